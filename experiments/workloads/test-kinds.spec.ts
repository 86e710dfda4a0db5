/** The table of kinds of tests is complete. The general code asks this table only, so a kind that it lacks does not exist. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { perfTestNames } from './perf-plan.ts';
import { readyWorkloadNames } from './ready-workloads.ts';
import { allKinds, kindOf, testKinds, workloadFieldNames } from './test-kinds.ts';
import { perfArgsOf, startOf } from './workload.ts';

it.each([...perfTestNames, ...readyWorkloadNames])('the arguments of %s lead back to its kind', (name) => {
  const start = startOf(name);
  expect(kindOf(perfArgsOf(start))).toBe(testKinds[start.test]);
});

it('no kind repeats a field or a ready workload of another kind', () => {
  const fields = allKinds.flatMap(({ own }) => own?.fields ?? []);
  expect(fields).toEqual([...new Set(fields)]);
  expect(workloadFieldNames.slice(-fields.length)).toEqual(fields);
  expect(readyWorkloadNames).toEqual(allKinds.flatMap(({ ready }) => Object.keys(ready)));
});

it.each(perfTestNames)('the programs of %s exist, at both sides', async (test) => {
  const programs = testKinds[test].programsOf(perfArgsOf({ test }));
  expect(new Set(programs.map(({ node }) => node))).toEqual(new Set([0, 1]));
  for (const { module, exportName } of programs) {
    const file = fileURLToPath(new URL(`${module}.ts`, import.meta.url));
    expect(existsSync(file)).toBe(true);
    expect(await import(file)).toHaveProperty(exportName);
  }
});
