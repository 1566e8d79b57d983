-- For scripts that would answer otherwise if they were run again. The last of ARGV are a mark and whether this is asked
-- again, because an answer was lost: then what was answered the first time is answered again, for a minute.
local again = table.remove(ARGV) == '1'
local ONCE = P .. 'mark:' .. table.remove(ARGV)

local function answered()
  local found = again and redis.call('GET', ONCE)
  return found and cjson.decode(found)
end

local function remember(answer)
  go_on_when_full()
  redis.call('SET', ONCE, cjson.encode(answer), 'PX', 60000)
  return answer
end
