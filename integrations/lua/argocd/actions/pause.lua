strategy.paused = true
return obj
