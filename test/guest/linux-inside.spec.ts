/**
 * A stock Linux on PCs of this process. Their processors run at 200 MHz: perftest measures its clock for half a second of the
 * guest's time, which this computer must compute.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import { faultsOf } from '../../cli/testing/schemas.ts';
import {
  insideFiles,
  LinuxMachine,
  type LinuxMachineOptions,
  type LinuxReport,
  linuxFaultsOf,
  linuxReportOf,
  renderLinuxReport,
} from '../../guests/linux/index.ts';
import { cache } from './suite.ts';

const options = {
  kernel: 'debian',
  cache,
  pc: { coreMhz: 200, memoryMib: 160 },
} as const satisfies LinuxMachineOptions;

/** Reason why the guest is unavailable; undefined if it is available. */
const reason = await insideFiles(options, cache).then(
  () => undefined,
  (error: unknown) => {
    if (!(error instanceof SimulatorError)) throw error;
    return error.message;
  },
);

const bootTimeoutMs = 300_000;
const limits = { timeoutSeconds: 30 };

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')(
  'two stock Linuxes in this process',
  () => {
    let machine: LinuxMachine;
    beforeAll(async () => {
      expect(reason).toBeUndefined();
      // The cable damages a packet: the sender retransmits it, and the programs do not notice.
      const faults = [{ packet: 'corrupted', node: 1, nth: '20' }] as const;
      machine = await LinuxMachine.start({ ...options, hosts: 2, faults, analysis: { lint: true } });
      await machine.load();
    }, bootTimeoutMs);
    afterAll(() => machine?.close());

    it('have ports that are active', async () => {
      for (const node of [0, 1]) {
        const { output, exitStatus } = await machine.run(node, 'ibv_devinfo', limits);
        expect(exitStatus).toBe(0);
        expect(output).toMatch(/hca_id:\s+mlx4_0[\s\S]*state:\s+PORT_ACTIVE/);
      }
    });

    // Option -c of ibv_rc_pingpong compares each buffer with what was sent.
    it.each([
      ['by polling', '-c'],
      ['by events', '-c -e'],
    ])('move right data between two processes of one of them %s', async (_, how) => {
      const pingpong = `ibv_rc_pingpong -g 0 -n 20 -s 4096 ${how}`;
      const { output, exitStatus } = await machine.run(
        0,
        `pair '${pingpong}' '${pingpong} localhost'`,
        limits,
      );
      expect([exitStatus, output]).toEqual([0, expect.stringMatching(/^20 iters in /m)]);
      expect(output).not.toContain('invalid data');
    });

    it.each([
      ['ib_write_lat -n 50 -s 64', /^ 64 +50 +\d/m],
      ['ib_send_bw -n 50 -s 4096', /^ 4096 +50 +\d/m],
    ])('run %s over the cable', async (test, row) => {
      const server = await machine.startServer(0, test, 30);
      expect(server.isListening).toBe(true);
      const client = await machine.run(1, `${test} host0`, limits);
      expect([client.exitStatus, client.output]).toEqual([0, expect.stringMatching(row)]);
      const { exitStatus, output, beganPs, endedPs, spent } = await machine.finish(server);
      expect([exitStatus, output]).toEqual([0, expect.stringContaining('Waiting for client')]);
      expect(Object.values(spent).reduce((sum, ps) => sum + ps, 0)).toBe(endedPs - beganPs);
    });

    it('count as many interrupts as their devices sent, whose ledgers balance, and time that adds up', async () => {
      const interrupts = await machine.compareInterrupts();
      // The vector of commands and that of completions, at each host.
      expect(interrupts.map(({ adapter, isEqual, name }) => [adapter, isEqual, name.split('@')[0]])).toEqual([
        ...[[0, true, 'mlx4-async'] as const, [0, true, 'mlx4-1'] as const],
        ...[[1, true, 'mlx4-async'] as const, [1, true, 'mlx4-1'] as const],
      ]);
      expect(interrupts[1]!.deviceCount).toBeGreaterThanOrEqual(20);
      const report = linuxReportOf(machine, [], interrupts);
      expect(linuxFaultsOf(report)).toEqual([]);
      expect(report.devices.analyses.flatMap(({ findings }) => findings)).toEqual([]);
      expect(report.devices.faults!.map(({ fired }) => fired)).toEqual([1]);
      expect(report.devices.wire.map(({ packets }) => packets > 50)).toEqual([true, true]);
      for (const [node, { time, elapsedPs, interrupts: taken, mmio }] of report.hosts.entries()) {
        expect(Object.values(time).reduce((sum, ps) => sum + ps, 0)).toBe(elapsedPs);
        const own = interrupts.filter(({ adapter }) => adapter === node);
        expect([taken.messages, taken.pins]).toEqual([
          own.reduce((sum, each) => sum + each.guestCount, 0),
          0,
        ]);
        const { accesses } = report.devices.nodes[node]!;
        const bars = [...Object.values(accesses.registers), ...Object.values(accesses.doorbells)];
        const stores = bars.reduce((sum, { writes }) => sum + writes, 0);
        // The stores to the MSI-X table do not leave the PC.
        expect(mmio.stores).toBeGreaterThan(stores);
        expect(mmio.stores - stores).toBeLessThan(1000);
      }
      expect(faultsOf(JSON.parse(JSON.stringify(report)) as LinuxReport)).toEqual([]);
      const ownLines = renderLinuxReport(report).split('\n').slice(-30);
      expect(ownLines.join('\n')).toContain('Not modelled');
      expect(ownLines.filter((line) => line.length > 80)).toEqual([]);
    });
  },
);

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('a run of a stock Linux', () => {
  /** The random numbers that programs get, and all that a command and the report say. */
  async function seenWith(
    seed: number,
    command = 'modprobe -a mlx4_core mlx4_ib ib_uverbs; ibv_devinfo',
  ): Promise<{ readonly random: string; readonly all: string }> {
    let consoleText = '';
    const machine = await LinuxMachine.start({
      ...options,
      seed,
      onConsole: (_, text) => {
        consoleText += text;
      },
    });
    const random = await machine.run(0, 'cat /proc/sys/kernel/random/uuid', limits);
    const loaded = await machine.run(0, command, limits);
    machine.close();
    const report = linuxReportOf(
      machine,
      [random, loaded].map((each) => ({ host: 0, ...each })),
      [],
    );
    return { random: random.output, all: JSON.stringify(report) + consoleText };
  }

  it(
    'is the same for the same seed, byte for byte, in report and console, and another for another',
    async () => {
      const probe = 'modprobe mlx4_core; dmesg | tail -5 >/dev/console';
      const first = await seenWith(3, probe);
      expect(first.all).toContain('Initializing 0000:00:06.0');
      expect(await seenWith(3, probe)).toEqual(first);
      const other = await seenWith(4, 'true');
      expect(other.random).not.toBe(first.random);
    },
    bootTimeoutMs,
  );
});
