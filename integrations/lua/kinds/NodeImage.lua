-- Healthy: all images of the spec are on the node. Degraded: all have been tried, and some failed.
local desired, succeeded, failed = 0, count("succeeded"), count("failed")
for _, image in pairs(entries(at(obj, "spec", "images"))) do desired = desired + #entries(at(image, "tags")) end
local tally = succeeded .. " of " .. desired .. " images are pulled, " .. failed .. " failed"
if succeeded + failed < desired then return progressing(tally) end
return failed > 0 and degraded(tally) or healthy(tally)
