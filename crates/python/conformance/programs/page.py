from collections import Counter
def line(row, seconds, verbose):
    t=f"{row['verdict']:13} {row['title']} [{seconds:.0f} s] "
    if 'ten' in row: t+=f"ten {row['ten']:.1e} fifty {row['fifty']:.1e} spread {row['spread']:.1e} steps {row['steps']} "
    t+=row['reason']
    t+=' s: '+','.join(f"{row[n]['seconds']:.1f}" for n in ('first','second','here') if n in row)
    if verbose:
        for n in ('first','second','here'):
            if n in row: t+="\n"+n+": "+row[n].get('trace','')+str(row[n]['losses'][:60])
    return t
def summary(rows): return str(Counter(r['verdict'] for r in rows))
def write(p, rows): pass
