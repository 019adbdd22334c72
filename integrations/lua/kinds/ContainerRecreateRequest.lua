-- Healthy: all containers were recreated. Degraded: completed, and some were not.
local phase = at(obj, "status", "phase")
local total, recreated, failure = #entries(at(obj, "spec", "containers")), 0, nil
for _, one in ipairs(entries(at(obj, "status", "containerRecreateStates"))) do
  if at(one, "phase") == "Succeeded" then recreated = recreated + 1 end
  if at(one, "phase") == "Failed" then failure = failure or text(at(one, "message"), "A container failed") end
end
local tally = recreated .. " of " .. total .. " containers recreated"
failure = text(at(obj, "status", "message"), failure)
if phase == "Completed" and recreated >= total and not failure then return healthy(tally) end
if phase == "Completed" then return degraded(failure and failure .. " (" .. tally .. ")" or tally) end
if type(phase) ~= "string" or phase == "" then return waiting() end
return progressing(tally)
