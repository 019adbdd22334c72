function ReflectStatus(observedObj)
  local status = {}
  for _, field in ipairs(FIELDS) do status[field] = at(observedObj, "status", field) end
  if GENERATIONS then
    local given = at(observedObj, "metadata", "annotations", "resourcetemplate.karmada.io/generation")
    status.generation = at(observedObj, "metadata", "generation")
    status.resourceTemplateGeneration = type(given) == "string" and tonumber(given) or nil
  end
  return status
end
