-- ARGV: worker, n, lease in ms, mark, whether this claim is asked again, the worker as history tells of it, a number by
-- chance (24 bits), how many earlier marks, these, how many weights, each queue and its weight, how many queues (-1: all),
-- each queue and its allowance, then the types. Answers whether another claim may bring more (2: this mark has a rest), then
-- id, record and payload where that lies apart, for each job claimed; of one that has kept values a list in place of the
-- payload, names and values and then the payload.
--
-- A mark stands for one claim. What it took is kept under it, in case that the answer is lost: then it is asked for again,
-- or the worker's next claim names the mark as one in doubt (?). From then on it is void: the request itself may still be on
-- its way, and must not lease jobs that nobody knows of. One whose answer came is forgotten (-), or is void (!) if it was
-- asked more than once. Where more was in doubt than is wanted now, the rest is kept under the mark and a +, which the next
-- claim names as in doubt.
local worker, n, lease, mark = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), P .. 'mark:' .. ARGV[4]
local again, draw = ARGV[5] == '1', tonumber(ARGV[7])
local MOST_BLOCKED = 500
local VOID, KEPT = 'void', 3600000
local until_ = digits[now + lease]

local function answer(ids, more)
  local told = {more}
  for _, id in ipairs(ids) do
    local job, at = job_of(id), #told
    told[at + 1] = id
    told[at + 2] = job[TEXT] or joined(job)
    local payload = job[APART] == '1' and redis.call('GET', P .. 'x:' .. id) or ''
    if keeps_some(job) then
      local kept = redis.call('HGETALL', P .. 'k:' .. id)
      kept[#kept + 1] = payload
      payload = kept
    end
    told[at + 3] = payload
  end
  return told
end

local function remember_taken(key, ids, first_, last)
  local parts = {}
  for at = first_, last do
    parts[#parts + 1] = ids[at] .. '=' .. jobs[ids[at]][TOKEN]
  end
  redis.call('SET', key, table.concat(parts, ','), 'PX', KEPT)
end

-- What was taken under a mark and is held by this worker under the same token still.
local function held_under(text, ids)
  for id, token in string.gmatch(text or '', '([^,=]+)=(%d+)') do
    local job = job_of(id)
    if job and job[STATUS] == 'p' and job[WORKER] == worker and job[TOKEN] == token then
      ids[#ids + 1] = id
    end
  end
  return ids
end

local taken_before = redis.call('GET', mark)
if taken_before == VOID then
  return {0}
elseif taken_before then
  return answer(held_under(taken_before, {}), 1 + redis.call('EXISTS', mark .. '+'))
end

local weights, allowance, types, asked = {}, {}, {}, nil
local in_doubt = {}
do
  local at = 8

  -- The next values of ARGV, as many as the one before them says, in steps: calls `each` with the place of each.
  local function each_of_next(step, each)
    local n_values = tonumber(ARGV[at])
    for place = at + 1, at + step * n_values, step do
      each(place)
    end
    at = at + 1 + step * math.max(0, n_values)
    return n_values
  end

  if ARGV[at] ~= '0' then
    go_on_when_full()
  end
  each_of_next(1, function(place)
    local what, earlier = string.sub(ARGV[place], 1, 1), P .. 'mark:' .. string.sub(ARGV[place], 2)
    if what == '-' then
      redis.call('DEL', earlier)
    else
      if what == '?' then
        held_under(redis.call('GET', earlier), in_doubt)
        held_under(redis.call('GETDEL', earlier .. '+'), in_doubt)
      end
      redis.call('SET', earlier, VOID, 'PX', KEPT)
    end
  end)
  each_of_next(2, function(place) weights[ARGV[place]] = math.max(1, tonumber(ARGV[place + 1])) end)
  asked = each_of_next(2, function(place) allowance[ARGV[place]] = tonumber(ARGV[place + 1]) end)
  for place = at, #ARGV do
    types[ARGV[place]] = true
  end
end
if #in_doubt > 0 then
  for _, id in ipairs(in_doubt) do
    local job = jobs[id]
    job[EXPIRES_AT] = until_
    touch(id, job)
    lease_all(names_of(job), {id}, until_)
  end
  flush()
  local rest = #in_doubt > n
  if rest then
    remember_taken(mark .. '+', in_doubt, n + 1, #in_doubt)
    for at = #in_doubt, n + 1, -1 do
      in_doubt[at] = nil
    end
  end
  remember_taken(mark, in_doubt, 1, #in_doubt)
  return answer(in_doubt, rest and 2 or 1)
end

local paused = {}
for _, name in ipairs(redis.call('HKEYS', P .. 'paused')) do
  paused[name] = true
end

local function may_give(queue)
  if asked < 0 then
    allowance[queue] = allowance[queue] or n
  end
  return not paused[queue] and (allowance[queue] or 0) > 0
end

-- Queues of one priority, each with its lines, are served side by side; those of the next only when these are used up.
local walked = {}

local function add_line(level, queue, type_, priority)
  local place = level.known[queue]
  if not place then
    place = {name = queue, lines = {}}
    level.known[queue] = place
    level[#level + 1] = place
  end
  local name = queue .. SEP .. type_ .. SEP .. priority
  local line = {
    key = P .. 'w:' .. name, name = name, queue = queue, priority = priority, from = 0, at = 1, found = {}, gone = 0,
  }
  place.lines[#place.lines + 1] = line
  walked[#walked + 1] = line
  fronts[line.key] = 0
end

local levels
do
  -- Where there are few lines, or some may not have been found for the index yet, all of them are looked at.
  local function levels_of_few(all)
    local next_ = 1
    return function()
      local level
      while all[next_] do
        local queue, type_, priority = split_line(all[next_])
        if level and level.priority ~= priority then
          return level
        end
        next_ = next_ + 1
        if types[type_] and may_give(queue) then
          level = level or {priority = priority, known = {}}
          add_line(level, queue, type_, priority)
        end
      end
      return level
    end
  end

  -- Made only where it is needed: every function costs each claim that does not call it, too.
  local function levels_of_many()
    -- Where there are many, a worker of some queues reads their lines alone, a page at a time: where every job has a
    -- priority of its own there are as many lines as jobs.
    local PAGE = 100

    local function own_line(own)
      while true do
        local member = own.page[own.at]
        if not member then
          if own.over then
            return nil
          end
          own.page = redis.call('ZRANGE', P .. 'by:' .. own.queue, own.from, own.from + PAGE - 1)
          own.over, own.from, own.at = #own.page < PAGE, own.from + PAGE, 1
        else
          local type_, priority = string.match(member, '^(.*)' .. SEP .. '(.*)$')
          if types[type_] then
            return type_, priority
          end
          own.at = own.at + 1
        end
      end
    end

    local function levels_of_queues()
      local owns = {}
      for queue in pairs(allowance) do
        if may_give(queue) then
          owns[#owns + 1] = {queue = queue, page = {}, at = 1, from = 0}
        end
      end
      table.sort(owns, function(one, other) return one.queue < other.queue end)
      return function()
        local level
        for _, own in ipairs(owns) do
          local _, priority = own_line(own)
          if priority and (not level or tonumber(priority) < tonumber(level.priority)) then
            level = {priority = priority, known = {}}
          end
        end
        for _, own in ipairs(level and owns or {}) do
          local type_, priority = own_line(own)
          while priority == level.priority do
            add_line(level, own.queue, type_, priority)
            own.at = own.at + 1
            type_, priority = own_line(own)
          end
        end
        return level
      end
    end

    -- A worker of all queues finds them by its types. It looks at some queues of a priority, beginning anywhere, and at
    -- more of them when these have nothing left.
    local function first_priority(above)
      local first
      for type_ in pairs(types) do
        local score = redis.call('ZRANGEBYSCORE', P .. 'of:' .. type_, above, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
        if score and (not first or tonumber(score) < tonumber(first)) then
          first = score
        end
      end
      return first
    end

    local function windows_at(priority)
      local windows = {}
      for type_ in pairs(types) do
        local key = P .. 'of:' .. type_
        local size = redis.call('ZCOUNT', key, priority, priority)
        if size > 0 then
          local base = redis.call('ZCOUNT', key, '-inf', '(' .. priority)
          windows[#windows + 1] = {key = key, base = base, size = size, start = math.floor(size * draw / 16777216), seen = 0}
        end
      end
      return windows
    end

    -- Round about, from where it began: queues that are looked at together take turns.
    local function look_into(window, many, each)
      local last = math.min(window.size, window.seen + many)
      local looked = last - window.seen
      while window.seen < last do
        local from = (window.start + window.seen) % window.size
        local count = math.min(last - window.seen, window.size - from)
        for _, member in ipairs(redis.call('ZRANGE', window.key, window.base + from, window.base + from + count - 1)) do
          each(string.match(member, '^(.*)' .. SEP))
        end
        window.seen = window.seen + count
      end
      return looked
    end

    local function levels_of_types()
      local above, priority, windows, seen = '-inf', nil, {}, {}
      return function()
        while true do
          local level, looked = {known = {}}, 0
          for _, window in ipairs(windows) do
            looked = looked + look_into(window, math.max(n, 20), function(queue)
              if not seen[queue] and may_give(queue) then
                for _, member in ipairs(redis.call('ZRANGEBYSCORE', P .. 'by:' .. queue, priority, priority)) do
                  local type_, text = string.match(member, '^(.*)' .. SEP .. '(.*)$')
                  if types[type_] then
                    add_line(level, queue, type_, text)
                  end
                end
              end
              seen[queue] = true
            end)
          end
          if #level > 0 then
            return level
          elseif looked == 0 then
            priority = first_priority(above)
            if not priority then
              return nil
            end
            above, windows, seen = '(' .. priority, windows_at(priority), {}
          end
        end
      end
    end

    return asked < 0 and levels_of_types() or levels_of_queues()
  end

  local FEW = 200
  function levels()
    if redis.call('ZCARD', P .. 'lines') <= FEW or not redis.call('HGET', P .. 'meta', 'indexed') then
      return levels_of_few(redis.call('ZRANGE', P .. 'lines', 0, -1))
    end
    return levels_of_many()
  end
end

local taken, blocked, first = {}, 0

local foremost
do
  -- How many are read of a line at once: its share of what is asked for, and then twice as many every time.
  local function page_of(line, beside)
    line.page = math.min(MOST, line.page and line.page * 2 or math.max(4, math.ceil((n - #taken) / beside)))
    return line.page
  end

  local function head(line, beside)
    if allowance[line.queue] < 1 then
      return nil
    end
    if line.at > #line.found then
      if line.over then
        return nil
      end
      local page = page_of(line, beside)
      line.found = redis.call('ZRANGE', line.key, line.from, line.from + page - 1, 'WITHSCORES')
      line.over = #line.found < 2 * page
      line.from, line.at = line.from + page, 1
      if line.from == page and #line.found == 0 then
        lines[line.name] = line.priority -- an empty line has no business in the index
      end
      local ids = {}
      for place = 1, #line.found, 2 do
        ids[#ids + 1] = line.found[place]
      end
      load(ids)
    end
    return line.found[line.at], line.found[line.at + 1]
  end

  -- The first of a queue: by time, then id, whatever its type.
  function foremost(place, beside)
    if #place.lines == 1 then
      local id = head(place.lines[1], beside)
      return id and place.lines[1], id
    end
    local best, best_id, best_at
    for _, line in ipairs(place.lines) do
      local id, score = head(line, beside)
      local run_at = tonumber(score)
      if id and (not best or run_at < best_at or (run_at == best_at and id < best_id)) then
        best, best_id, best_at = line, id, run_at
      end
    end
    return best, best_id
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

local function full()
  return #taken >= n or blocked >= MOST_BLOCKED
end

-- Takes the first of a queue, or puts it aside; answers whether one was taken, or nothing where the queue has no more.
-- One that has expired is left to promote.lua, and in no line until then: the next claim need not pass it over.
local function serve(place, beside)
  local line, id = foremost(place, beside)
  if not line then
    return nil
  end
  -- Whatever becomes of the first in a line, it leaves it.
  line.at, line.gone = line.at + 2, line.gone + 1
  local job = jobs[id]
  local by = job and not is_plain(job) and gate(job)
  if by == EXPIRED then
    blocked = blocked + 1
  elseif by then
    put_aside(id, job, by)
    blocked = blocked + 1
  elseif job then
    allowance[line.queue] = allowance[line.queue] - 1
    take(id, job)
    return true
  end
  return false
end

-- Where turns begin: anywhere, also in the middle of one, so that weights hold among claims for a single job, too.
local function first_turn(level)
  local all = 0
  for _, place in ipairs(level) do
    all = all + (weights[place.name] or 1)
  end
  local from = math.floor(all * draw / 16777216)
  for at_, place in ipairs(level) do
    local turn_ = weights[place.name] or 1
    if from < turn_ then
      return at_, turn_ - from
    end
    from = from - turn_
  end
end

-- Queues take turns, each for as many jobs as it weighs.
local function take_turns(level)
  local at_, left = first_turn(level)
  while #level > 0 and not full() do
    local place = level[at_]
    while left > 0 and not full() do
      local served = serve(place, #level)
      if served == nil then
        table.remove(level, at_)
        at_ = at_ - 1
        break
      end
      left = left - (served and 1 or 0)
    end
    at_ = at_ % math.max(1, #level) + 1
    left = level[at_] and weights[level[at_].name] or 1
  end
end

local next_level = levels()
while not full() do
  local level = next_level()
  if not level then
    break
  end
  take_turns(level)
end
for _, line in ipairs(walked) do
  if line.gone > 0 then
    fronts[line.key], lines[line.name] = line.gone, line.priority
  end
end
move_all(claims)
flush()
local keys_changed = false
for _, id in ipairs(taken) do
  local job = jobs[id]
  if job[KEY] ~= job[KEY_RUNNING] then
    let_go(id, job)
    hold(id, job, job[KEY_RUNNING])
    touch(id, job)
    keys_changed = true
  end
end
if keys_changed then
  flush()
end
book_rates()
if #taken > 0 then
  remember_taken(mark, taken, 1, #taken)
elseif again then
  redis.call('SET', mark, VOID, 'PX', KEPT)
end
return answer(taken, #taken < n and blocked >= MOST_BLOCKED and 1 or 0)
