-- Healthy: the resource is in all namespaces. Degraded: it could not be written to some.
if not observed() then return waiting() end
local desired, succeeded, failed = count("desired"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. desired .. " namespaces have the resource, " .. failed .. " failed"
for _, one in ipairs(entries(at(obj, "status", "conditions"))) do
  if at(one, "status") == "True" then return degraded(text(at(one, "reason"), "Failed") .. " (" .. tally .. ")") end
end
if failed > 0 then return degraded(tally) end
return succeeded < desired and progressing(tally) or healthy(tally)
