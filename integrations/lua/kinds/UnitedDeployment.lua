-- Healthy: the pods of all subsets are updated and ready. Suspended: updated up to the partitions.
if not observed() then return waiting() end
local partitions = at(obj, "spec", "updateStrategy", "manualUpdate", "partitions")
if at(obj, "spec", "template", "deploymentTemplate") then partitions = nil end -- Deployments have no partition
local wanted, held = 0, 0
for _, subset in ipairs(entries(at(obj, "status", "subsetStatuses"))) do
  local name, pods = at(subset, "name"), number(at(subset, "replicas")) - number(at(subset, "reservedPods"))
  wanted = wanted + pods
  if name ~= nil then held = held + share(at(partitions, name), pods) end
end
if wanted == 0 then wanted = replicas() end
return rollout({
  wanted = wanted,
  there = count("replicas"),
  expected = wanted - held,
  updated = count("updatedReplicas"),
  unavailable = wanted - count("readyReplicas"),
  failure = condition("SubsetFailure", "True"),
})
