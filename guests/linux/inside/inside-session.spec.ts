import { describe, expect, it } from 'vitest';
import { silentProgress } from '../progress.ts';
import { scenarioNamed, scenarios } from '../scenarios/index.ts';
import { insideScenarioOf, needOfQemu, startInside } from './inside-session.ts';

describe('scenarios in this process', () => {
  it('are those with one adapter in each guest, on software that kernels of 32 bits have', () => {
    const running = scenarios.filter((each) => needOfQemu(each) === undefined).map(({ name }) => name);
    expect(running).toEqual([
      ...[
        'probe',
        'loopback',
        'two-guests',
        'ethernet',
        'ethernet-offloads',
        'roce',
        'roce-v1',
        'raw-packets',
      ],
      ...['peer', 'ethernet-peer', 'roce-peer', 'roce-v1-peer', 'subnet-manager', 'nfs', 'nfs-roce'],
      ...['faults-probe', 'faults-work', 'srp-unbind'],
    ]);
  });

  it('leave out steps that restart a guest', () => {
    const probe = scenarioNamed('probe');
    const left = insideScenarioOf(probe).steps;
    expect(probe.steps.filter((step) => !left.includes(step)).map(({ title }) => title)).toEqual([
      'the guest restarts with the drivers loaded, and finds the adapter as it was at power-on',
    ]);
  });

  it.each([
    ['cable', 'it has two adapters in one guest'],
    ['soft-iwarp', 'kernels of 32 bits have no Soft-iWARP'],
    ['rough-guests', 'it kills and replaces guests'],
  ])('refuse %s before anything is fetched', async (name, reason) => {
    const cache = { folder: '/nonexistent', mirror: undefined, progress: silentProgress };
    await expect(startInside(scenarioNamed(name), { kernel: 'debian', cache })).rejects.toThrow(
      `scenario is "${name}", expected one that needs no guest of QEMU: ${reason}`,
    );
  });
});
