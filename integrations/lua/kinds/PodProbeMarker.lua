-- Healthy: the spec is observed, and the pods that it matches are probed.
if not observed() then return waiting() end
return healthy(count("matchedPods") .. " pods are probed")
