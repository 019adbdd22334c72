function GetDependencies(desiredObj)
  local template = TEMPLATE
  if not template then return {} end
  return require("kube").getPodDependencies(template, at(desiredObj, "metadata", "namespace"))
end
