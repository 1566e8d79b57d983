-- Answers now, the queues, when they were paused, their largest depths, the counts, and for each queue the instant that its
-- longest-waiting job was queued at. Only reads. No job is queued before it is due, so in a line, which goes by run_at,
-- the first that was due no earlier than the longest-waiting one so far ends the search. It is given up, and what was
-- found is answered, when thousands of jobs or lines were looked at: others wait meanwhile.
local PAGE, MOST_LOOKED, MOST_LINES_LOOKED = 20, 5000, 2000
local oldest, looked = {}, 0

local function look(line)
  local queue, from = string.match(line, '^([^' .. SEP .. ']*)'), 0
  while looked < MOST_LOOKED do
    local found = redis.call('ZRANGE', P .. 'w:' .. line, from, from + PAGE - 1, 'WITHSCORES')
    for at = 1, #found, 2 do
      if oldest[queue] and tonumber(found[at + 1]) >= oldest[queue] then
        return
      end
      local job = job_of(found[at])
      if job then
        oldest[queue] = math.min(oldest[queue] or math.huge, tonumber(job[QUEUED_AT]))
      end
      looked = looked + 1
    end
    if #found < 2 * PAGE then
      return
    end
    from = from + PAGE
  end
end

for _, line in ipairs(redis.call('ZRANGE', P .. 'lines', 0, MOST_LINES_LOOKED - 1)) do
  look(line)
end
local waiting = {}
for queue, at in pairs(oldest) do
  waiting[#waiting + 1] = queue
  waiting[#waiting + 1] = digits[at]
end
return {
  now, redis.call('HKEYS', P .. 'queues'), redis.call('HGETALL', P .. 'paused'), redis.call('HGETALL', P .. 'depths'),
  redis.call('HGETALL', P .. 'counts'), waiting,
}
