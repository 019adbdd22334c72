-- Healthy: the jobs of all images have succeeded. Degraded: all have ended, and some failed.
local desired, completed, succeeded = count("desired"), count("completed"), count("succeeded")
local failed = #entries(at(obj, "status", "failedImageStatuses"))
local tally = succeeded .. " of " .. desired .. " images are pulled, " .. failed .. " failed"
local ended = at(obj, "status", "completionTime") ~= nil
if not ended and at(obj, "status", "startTime") == nil then return waiting() end
if ended or (desired > 0 and completed >= desired) then
  return (failed > 0 or succeeded < desired) and degraded(tally) or healthy(tally)
end
return progressing(tally)
