import re, sys
def launches(s):
    out = ''
    pat = re.compile(r'([A-Za-z_][\w:]*\s*(?:<(?:[^<>;{}]|<(?:[^<>;{}]|<[^<>;{}]*>)*>)*>)?)\s*<<<(.*?)>>>\s*\(', re.S)
    while True:
        m = pat.search(s)
        if not m: return out + s
        i = m.end(); depth = 1
        while depth:
            depth += {'(': 1, ')': -1}.get(s[i], 0); i += 1
        args = s[m.end():i-1]
        out += s[:m.start()] + 'do { const ::emu::Config emu_config(%s); ::emu::launch(emu_config.grid, emu_config.block, emu_config.shared, emu_config.stream, [&] { %s(%s); }); } while (0)' % (m.group(2), m.group(1), args)
        s = s[i:]
s = open(sys.argv[1]).read()
s = re.sub(r'extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?([\w:]+(?: \w+)?)\s+(\w+)\[\];', r'\1* const \2 = reinterpret_cast<\1*>(::emu::dynamic_shared);', s)
s = s.replace('CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, work, room));', '::emu::launch(config.gridDim, config.blockDim, config.dynamicSmemBytes, stream, [&] { kernel(work, room); });')
s = launches(s)
open(sys.argv[2], 'w').write('#line 1 "%s"\n' % sys.argv[1] + s)
