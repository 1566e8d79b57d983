-- ARGV: worker, n, lease in ms, mark, whether this claim is asked again, the worker as history tells of it, how many
-- queues (-1: all), each queue and its allowance, then the types. Answers id, record and payload where that lies apart, for each job claimed.
local worker, n, lease, mark = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), P .. 'mark:' .. ARGV[4]
local MOST_BLOCKED = 1000
local until_ = digits[now + lease]

local function answer(ids)
  local told = {}
  for _, id in ipairs(ids) do
    local job, at = job_of(id), #told
    told[at + 1] = id
    told[at + 2] = job[TEXT] or joined(job)
    told[at + 3] = job[APART] == '1' and redis.call('GET', P .. 'x:' .. id) or ''
  end
  return told
end

if ARGV[5] == '1' then
  -- The answer to this very claim may have been lost: what it took is given again, if it still is this worker's.
  local kept = {}
  for id in string.gmatch(redis.call('GET', mark) or '', '[^,]+') do
    local job = job_of(id)
    if job and job[STATUS] == 'p' and job[WORKER] == worker then
      kept[#kept + 1] = id
    end
  end
  if #kept > 0 then
    return answer(kept)
  end
end

local allowance, asked, at = {}, tonumber(ARGV[7]), 8
for _ = 1, asked do
  allowance[ARGV[at]] = tonumber(ARGV[at + 1])
  at = at + 2
end
local types = {}
for place = at, #ARGV do
  types[ARGV[place]] = true
end
local paused = {}
for _, name in ipairs(redis.call('HKEYS', P .. 'paused')) do
  paused[name] = true
end

local function split_line(line)
  local first = string.find(line, SEP, 1, true)
  local second = string.find(line, SEP, first + 1, true)
  return string.sub(line, 1, first - 1), string.sub(line, first + 1, second - 1), string.sub(line, second + 1)
end

-- Lines of one priority are walked side by side, those of the next only when they are used up. They are read a page at a
-- time: where every job has a priority of its own there are as many lines as jobs.
local LINES_AT_ONCE = 100
local page, page_at, page_from, pages_over = {}, 1, 0, false

local function next_line()
  if page_at > #page and not pages_over then
    page = redis.call('ZRANGE', P .. 'lines', page_from, page_from + LINES_AT_ONCE - 1)
    pages_over = #page < LINES_AT_ONCE
    page_from, page_at = page_from + LINES_AT_ONCE, 1
  end
  return page[page_at]
end

local walked = {}

local function next_group()
  local group
  while true do
    local line = next_line()
    if not line then
      return group
    end
    local queue, type_, priority = split_line(line)
    if group and group.priority ~= priority then
      return group
    end
    page_at = page_at + 1
    if types[type_] and not paused[queue] and (asked < 0 or (allowance[queue] or 0) > 0) then
      if asked < 0 then
        allowance[queue] = allowance[queue] or n
      end
      group = group or {priority = priority}
      group[#group + 1] = {
        key = P .. 'w:' .. line, name = line, queue = queue, priority = priority, from = 0, at = 1, found = {}, gone = 0,
      }
      walked[#walked + 1] = group[#group]
      fronts[P .. 'w:' .. line] = 0
    end
  end
end

local taken, blocked, first = {}, 0

local function head(line)
  if allowance[line.queue] < 1 then
    return nil
  end
  if line.at > #line.found then
    if line.over then
      return nil
    end
    local page = math.max(20, math.min(n - #taken, MOST))
    line.found = redis.call('ZRANGE', line.key, line.from, line.from + page - 1, 'WITHSCORES')
    line.over = #line.found < 2 * page
    line.from, line.at = line.from + page, 1
    local ids = {}
    for place = 1, #line.found, 2 do
      ids[#ids + 1] = line.found[place]
    end
    load(ids)
  end
  return line.found[line.at], line.found[line.at + 1]
end

local function foremost(group)
  if #group == 1 then
    local id = head(group[1])
    return id and group[1], id
  end
  local best, best_id, best_at
  for _, line in ipairs(group) do
    local id, score = head(line)
    local run_at = tonumber(score)
    if id and (not best or run_at < best_at or (run_at == best_at and id < best_id)) then
      best, best_id, best_at = line, id, run_at
    end
  end
  return best, best_id
end

local used, held = {}, {}

-- What is spent of the rates that this claim meets, how many stand in their lines, and what it books itself.
local rates = {}

local function rates_let_through(key, job)
  local n, per = control_of(job)
  local rate = rates[key]
  if not rate then
    rate = {spent = spent_of(key, per), in_line = redis.call('ZCARD', P .. 'b:rate:' .. key), booked = 0}
    rates[key] = rate
  end
  local called = job[BLOCKED_BY] ~= ''
  if rate.spent + (called and 0 or rate.in_line) >= n then
    rate.in_line = rate.in_line + 1
    return false
  end
  rate.spent, rate.booked, rate.per = rate.spent + 1, rate.booked + 1, per
  return true
end

-- Under the end of the part of the window that now lies in, as core.rate says.
local function book_rates()
  for key, rate in pairs(rates) do
    if rate.booked > 0 then
      local name, part = P .. 'rate:' .. key, math.floor(rate.per / 20)
      for _, at in ipairs(redis.call('HKEYS', name)) do
        if tonumber(at) <= now - rate.per then
          redis.call('HDEL', name, at)
        end
      end
      redis.call('HINCRBY', name, digits[math.ceil(now / part) * part], rate.booked)
      redis.call('PEXPIRE', name, rate.per + part)
    end
  end
end

-- What keeps a job from running now, counting what this very claim has let through.
local function gate(job)
  local limit, running = job[LIMIT_KEY], job[KEY_RUNNING]
  if running == job[KEY] then
    running = ''
  end
  if limit ~= '' then
    used[limit] = used[limit] or tonumber(redis.call('HGET', P .. 'slots', limit) or 0)
    if used[limit] >= tonumber(job[LIMIT] ~= '' and job[LIMIT] or 1) then
      return 'limit:' .. limit
    end
  end
  if running ~= '' then
    if held[running] or redis.call('HEXISTS', P .. 'keys', running) == 1 then
      return 'unique:' .. running
    end
  end
  local rate = job[MORE] ~= '' and more_of(job) or ''
  if rate ~= '' and not rates_let_through(rate, job) then
    return 'rate:' .. rate
  end
  if running ~= '' then
    held[running] = true
  end
  if limit ~= '' then
    used[limit] = used[limit] + 1
  end
end

-- What a claim changes alike in jobs that look alike.
local claims = {}

local function claimed(job)
  first = first or first_token()
  job[WORKER], job[TOKEN], job[EXPIRES_AT] = worker, digits[math.max(job[TOKEN] + 1, first)], until_
  job[ATTEMPTS], job[STARTED_AT], job[PROGRESS], job[BLOCKED_BY] = digits[job[ATTEMPTS] + 1], NOW, '', ''
  return 'p', entry_of('k', 'p', job[TOKEN], ARGV[6])
end

local function take(id, job)
  job[UPDATED_AT], job[WAIT] = NOW, job[QUEUED_AT] ~= '' and digits[now - job[QUEUED_AT]] or ''
  turn(id, job, claims, claimed)
  taken[#taken + 1] = id
end

local function block(id, job, by)
  leave(id, job, 'b')
  job[UPDATED_AT], job[BLOCKED_BY] = NOW, by
  enter(id, job, 'b', 'q')
  tell(id, job, 'b', '', noted(by))
  blocked = blocked + 1
end

while #taken < n and blocked < MOST_BLOCKED do
  local group = next_group()
  if not group then
    break
  end
  while #taken < n and blocked < MOST_BLOCKED do
    local line, id = foremost(group)
    if not line then
      break
    end
    -- Whatever becomes of the first in a line, it leaves it.
    line.at, line.gone = line.at + 2, line.gone + 1
    local job = jobs[id]
    local by = job and gate(job)
    if by then
      block(id, job, by)
    elseif job then
      allowance[line.queue] = allowance[line.queue] - 1
      take(id, job)
    end
  end
end
for _, line in ipairs(walked) do
  if line.gone > 0 then
    fronts[line.key], lines[line.name] = line.gone, line.priority
  end
end
move_all(claims)
flush()
for _, id in ipairs(taken) do
  local job = jobs[id]
  if job[KEY] ~= job[KEY_RUNNING] then
    let_go(id, job)
    hold(id, job, job[KEY_RUNNING])
    touch(id, job)
  end
end
flush()
book_rates()
if #taken > 0 then
  redis.call('SET', mark, table.concat(taken, ','), 'PX', 60000)
end
return answer(taken)
