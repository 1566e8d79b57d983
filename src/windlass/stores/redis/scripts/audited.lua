-- ARGV: list, largest and smallest time, time and id of the entry that the page before ended with, or nothing, how many;
-- then actor, action and object, each nothing for any. Answers ids and records, newest first, and the id of the last entry
-- looked at if there may be more. Only reads, and no more than MOST_LOOKED entries: a page may be short and not the last.
local MOST_LOOKED, STEP = 10000, 200
local list, largest, smallest, last_at, last_id, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

local function matches(entry)
  for field = 2, 4 do
    local asked = ARGV[field + 5]
    if asked ~= '' and entry[field] ~= asked then
      return false
    end
  end
  return true
end

local told, last, looked = {}, '', 0
while true do
  local ids = redis.call('ZREVRANGEBYSCORE', P .. list, largest, smallest, 'LIMIT', looked, STEP)
  if #ids == 0 then
    return {told, ''}
  end
  for place, record in ipairs(redis.call('HMGET', P .. 'audited', unpack(ids))) do
    local id, entry = ids[place], record and split(record)
    if entry and not (entry[1] == last_at and id >= last_id) then
      if #told == 2 * limit or looked >= MOST_LOOKED then
        return {told, last}
      end
      if matches(entry) then
        told[#told + 1] = id
        told[#told + 1] = record
      end
      last = entry[1] .. '.' .. id
    end
    looked = looked + 1
  end
end
