-- Healthy: at least the desired number of pods is available.
if not observed() then return waiting() end
local current, desired, allowed = count("currentAvailable"), count("desiredAvailable"), count("unavailableAllowed")
if current < desired then
  return progressing(current .. " pods are available, " .. desired .. " are desired: no disruption is allowed")
end
return healthy(current .. " pods are available, " .. allowed .. " of them may become unavailable")
