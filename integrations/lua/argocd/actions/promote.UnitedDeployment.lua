for subset in pairs(strategy) do strategy[subset] = 0 end
return obj
