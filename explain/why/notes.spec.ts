import { expect, it } from 'vitest';
import { Machine } from '../../machine/index.ts';
import { diagnosedGuests, diagnosedRun } from './index.ts';
import { furtherMistakes } from './testing/further-mistakes.ts';

it('ignores a READ of an earlier life of a QP for a request after its reset', async () => {
  const name = 'the buffer of a READ is sent on without a fence';
  const { host0, host1 } = furtherMistakes.find((one) => one.name === name)!;
  await using machine = await Machine.create({ analysis: { evidence: {} } });
  await machine.load({ node: 0, name: 'host0', run: host0 });
  await machine.load({ node: 1, name: 'host1', run: host1 });
  await diagnosedRun(machine);
  const evidence = await machine.evidence();
  const causes = () => diagnosedGuests(evidence).map(({ cause }) => cause);
  expect(causes()).toContain('fence-missing');
  const [read, write] = evidence.hosts[0]!.posts;
  const qp = evidence.devices[0]!.qps.find(({ qpn }) => qpn === read!.qpn)!;
  const states = [...qp.states, { state: 'RESET', by: 'software', atPs: write!.atPs } as const];
  Object.assign(qp, { states });
  expect(causes()).not.toContain('fence-missing');
});
