/** Faults of single accesses, as a stock driver meets them; each test continues from the kept snapshot of a booted Linux. */
import { test as base, describe, expect } from 'vitest';
import { LinuxMachine } from '../../guests/linux/inside/index.ts';
import { cache, reasonAgainstInside } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
/** The fixture of docs/how-to/linux.md. */
const test = base.extend<{ linux: LinuxMachine }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest requires a destructured first parameter
  linux: async ({}, use) => {
    const linux = await LinuxMachine.start({ kernel: 'debian', cache });
    await use(linux);
    linux.close();
  },
});
const probe = 'modprobe mlx4_core; dmesg | grep mlx4_core';
const limits = { timeoutSeconds: 30 };

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('a stock mlx4_core', () => {
  test('takes all ones for the owner of the HCA to be another function', async ({ linux }) => {
    expect(reason).toBeUndefined();
    const host = linux.host(0);
    // The driver's first load is that of the owner (Linux, drivers/net/ethernet/mellanox/mlx4/main.c, mlx4_get_ownership).
    host.injectAccessFault({ kind: 'load-ones', nth: 1 });
    const { output } = await linux.run(0, probe, limits);
    expect(output).toContain('Multiple PFs not yet supported');
    expect(host.pc.function.faults.happenedCount).toBe(1);
    expect(host.pc.registers.privilege).toBe(0);
  });
});
