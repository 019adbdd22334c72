function GetDependencies(desiredObj)
  local template = TEMPLATE
  if not template then return {} end
  local found = require("kube").getPodDependencies(template, at(desiredObj, "metadata", "namespace"))
  return found or {} -- it also returns an error, which must not be the result
end
