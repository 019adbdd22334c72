-- Healthy: all containers have succeeded. Degraded: one, or the job, has failed.
local phase, matched, succeeded, failed = at(obj, "status", "phase"), count("match"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. matched .. " pods succeeded, " .. failed .. " failed"
local failure = condition("JobError", "True") or condition("JobFailed", "True")
if failure or failed > 0 or phase == "Failed" or phase == "Error" then
  return degraded((failure or "Job failed") .. " (" .. tally .. ")")
end
if phase == "Succeeded" or condition("JobSucceeded", "True") then return healthy("Job completed: " .. tally) end
if phase == "Paused" or at(obj, "spec", "paused") == true then return suspended("Job is paused: " .. tally) end
if type(phase) ~= "string" or phase == "" then return waiting() end
if matched == 0 then return progressing("Job matches no pods") end
return progressing("Job is running: " .. tally)
