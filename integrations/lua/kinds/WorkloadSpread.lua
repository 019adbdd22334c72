-- Healthy: the spec is observed. Full subsets are normal: pods go to the next one then.
if not observed() then return waiting() end
local subsets = entries(at(obj, "status", "subsetStatuses"))
local pods, full = 0, 0
for _, subset in ipairs(subsets) do
  pods = pods + number(at(subset, "replicas"))
  for _, one in ipairs(entries(at(subset, "conditions"))) do
    if at(one, "type") == "Schedulable" and at(one, "status") == "False" then full = full + 1 end
  end
end
return healthy(pods .. " pods in " .. #subsets .. " subsets, " .. full .. " of them without room")
