-- Shared by the scripts of schedules: their records, and `upcoming`, which has every schedule by its next tick; one that is
-- paused has none that would ever come.
local EXPRESSION, ZONE, NEXT, LAST, PAUSED, UPDATED = 1, 2, 10, 11, 12, 14

local function stand(name, known)
  redis.call('ZADD', P .. 'upcoming', known[PAUSED] == '' and known[NEXT] or '+inf', name)
end

local function write_schedule(name, known)
  redis.call('HSET', P .. 'schedules', name, packed(known))
  stand(name, known)
end

-- For schedules written by versions that do not know `upcoming`.
local function stand_all()
  local found = redis.call('HGETALL', P .. 'schedules')
  redis.call('DEL', P .. 'upcoming')
  for at = 1, #found, 2 do
    stand(found[at], split(found[at + 1]))
  end
end
