-- Healthy: the spec is observed, and the places of pods are recorded.
if not observed() then return waiting() end
local pods = 0
for _ in pairs(entries(at(obj, "status", "podStates"))) do pods = pods + 1 end
return healthy("The states of " .. pods .. " pods are recorded")
