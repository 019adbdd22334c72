-- Healthy: completed, or for a job that never ends, all pods have finished. Degraded: failed.
local phase, desired, succeeded, failed = at(obj, "status", "phase"), count("desired"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. desired .. " pods succeeded, " .. failed .. " failed"
local failure = condition("Failed", "True")
if failure or phase == "failed" then return degraded((failure or "Job failed") .. " (" .. tally .. ")") end
if phase == "paused" then return suspended("Job is paused: " .. tally) end
if phase == "completed" or condition("Complete", "True") then return healthy("Job completed: " .. tally) end
if at(obj, "spec", "paused") == true then return suspended("Job is paused: " .. tally) end
if type(phase) ~= "string" or phase == "" then return waiting() end
local endless = at(obj, "spec", "completionPolicy", "type") == "Never"
if endless and count("active") == 0 and succeeded + failed >= desired then
  return healthy("Job waits for new nodes: " .. tally)
end
return progressing("Job is running: " .. tally)
