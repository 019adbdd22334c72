-- Return the value under these keys; nil if a part of the path is absent, null or of another type.
local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then return nil end
    value = value[key]
  end
  return value
end

local function number(value)
  if type(value) == "number" then return value end
  return 0
end

local function count(...) return number(at(obj, "status", ...)) end

-- Return the greatest of some counts: pods in one of them exist, even if others lag behind.
local function most(...)
  local greatest = 0
  for _, name in ipairs({...}) do
    if count(name) > greatest then greatest = count(name) end
  end
  return greatest
end

local function entries(value)
  if type(value) == "table" then return value end
  return {}
end

-- Return the only member of a table.
local function only(value)
  for _, member in pairs(entries(value)) do return member end
end

local function text(value, default)
  if type(value) == "string" and value ~= "" then return value end
  return default
end

-- Return the message of a status condition with this value; nil without one.
local function condition(kind, value, reason)
  for _, one in ipairs(entries(at(obj, "status", "conditions"))) do
    local why = at(one, "reason")
    if at(one, "type") == kind and at(one, "status") == value and (reason == nil or reason == why) then
      return text(at(one, "message"), text(why, kind))
    end
  end
end

local function observed()
  return type(at(obj, "status")) == "table" and count("observedGeneration") >= number(at(obj, "metadata", "generation"))
end

local function replicas()
  local value = at(obj, "spec", "replicas")
  if type(value) == "number" then return value end
  return 1
end

-- Convert a number of pods or a percentage to pods, at most the total. Rounded up, less than 100% is less than the total.
local function share(value, total, up)
  if type(value) == "number" then return value < total and value or total end
  for percent = 1, 999 do
    if value == percent .. "%" then
      if percent >= 100 then return total end
      local exact = total * percent / 100
      local whole = exact - exact % 1
      return up and whole < exact and (whole + 1 < total or total == 1) and whole + 1 or whole
    end
  end
  return 0
end
