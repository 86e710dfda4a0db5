import { expect, it } from 'vitest';
import { perfPage } from './perf-page.ts';
import type { ReportedRow } from './perf-run.ts';

const times = { minPs: 1e6, maxPs: 3e6, typicalPs: 2e6, averagePs: 2e6, p99Ps: 3e6, p999Ps: 3e6 };
const row = (verb: string): ReportedRow =>
  ({
    args: { verb, isLatency: true, sizeBytes: 64, iterations: 5, qpCount: 1 },
    result: { iterations: 5, ...times },
    interrupts: [0, 0],
  }) as unknown as ReportedRow;

it('says of what way the latencies are: READ and atomics have a whole round trip', () => {
  const pageOf = (verb: string) => perfPage({ title: 't', command: 'c', version: '1' }, [row(verb)], []);
  for (const verb of ['write', 'send']) expect(pageOf(verb)).toContain('half a round trip');
  for (const verb of ['read', 'atomic']) expect(pageOf(verb)).toContain('a whole round trip');
});
