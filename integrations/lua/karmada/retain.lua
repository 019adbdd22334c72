function Retain(desiredObj, observedObj)
  local spec = at(desiredObj, "spec")
  if type(spec) ~= "table" then return desiredObj end
RETAINED
  return desiredObj
end
