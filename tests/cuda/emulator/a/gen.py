import re,sys
def back(s,i):  # start of the kernel expression that ends at i
    j=i
    while s[j-1].isspace(): j-=1
    if s[j-1]=='>':
        d=0
        while True:
            j-=1
            if s[j]=='>': d+=1
            if s[j]=='<':
                d-=1
                if d==0: break
    while re.match(r'[\w:]',s[j-1]): j-=1
    return j
def balanced(s,i):
    d=0
    while True:
        if s[i]=='(': d+=1
        if s[i]==')':
            d-=1
            if d==0: return i
        i+=1
def convert(s):
    s=re.sub(r'extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];',r'\1* const \2 = reinterpret_cast<\1*>(emu::dynamic_shared);',s)
    while '<<<' in s:
        i=s.index('<<<'); e=s.index('>>>',i); b=back(s,i)
        o=s.index('(',e); c=balanced(s,o)
        k=s[b:i].strip(); args=s[o+1:c]; conf=s[i+3:e]
        s=s[:b]+'emu::launch([&] { %s(%s); }, %s)'%(k,args,conf)+s[c+1:]
    return s
for f in sys.argv[2:]:
    out=sys.argv[1]+'/'+f.replace('/','_')+'.cpp'
    open(out,'w').write(convert(open(f).read()))
