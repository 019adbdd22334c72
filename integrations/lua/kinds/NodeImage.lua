-- Healthy: all images of the spec are on the node. Degraded: all have been tried, and some failed.
local desired, succeeded, failed = count("desired"), count("succeeded"), count("failed")
local tally = succeeded .. " of " .. desired .. " images are pulled, " .. failed .. " failed"
if succeeded + failed < desired then return progressing(tally) end
return failed > 0 and degraded(tally) or healthy(tally)
