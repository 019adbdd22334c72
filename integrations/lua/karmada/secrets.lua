function GetDependencies(desiredObj)
  local found = {}
  for _, name in ipairs(entries(at(desiredObj, "spec", "pullSecrets"))) do
    table.insert(found, {
      apiVersion = "v1", kind = "Secret", namespace = at(desiredObj, "metadata", "namespace"), name = name,
    })
  end
  return found
end
