function GetReplicas(desiredObj)
  local replicas = at(desiredObj, "spec", "replicas")
  if type(replicas) ~= "number" then replicas = 1 end
  local template, requirements = TEMPLATE, nil
  if template then requirements = require("kube").accuratePodRequirements(template) end
  return replicas, requirements
end
