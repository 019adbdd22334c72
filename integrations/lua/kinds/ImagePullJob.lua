-- Healthy: all nodes have the image. Degraded: the job ended without that, or all nodes reported and some failed.
local desired, succeeded, failed = count("desired"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. desired .. " nodes have the image, " .. failed .. " failed"
local ended = at(obj, "status", "completionTime") ~= nil
if not ended and at(obj, "status", "startTime") == nil then return waiting() end
if ended or (desired > 0 and succeeded + failed >= desired) then
  return (failed > 0 or succeeded < desired) and degraded(tally) or healthy(tally)
end
return progressing(tally)
