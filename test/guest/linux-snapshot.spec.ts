/** A state of a stock Linux from which several machines continue, each with a fresh HCA. */
import { describe, expect, it } from 'vitest';
import { LinuxMachine, type LinuxMachineOptions } from '../../guests/linux/inside/index.ts';
import { cache, reasonAgainstInside, slowPc } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const options = { kernel: 'debian', cache, pc: slowPc } as const satisfies LinuxMachineOptions;
const limits = { timeoutSeconds: 30 };

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')(
  'a snapshot of a stock Linux',
  { timeout: 300_000 },
  () => {
    it('has its files and settings, and machines that continue from it are equal', async () => {
      expect(reason).toBeUndefined();
      const first = await LinuxMachine.start(options);
      await first.check(0, 'echo prepared >/root/note; echo 7 >/proc/sys/kernel/printk');
      const snapshot = await first.snapshot();
      first.close();
      const seen = [];
      for (const seed of [4, 4, 5]) {
        const machine = await LinuxMachine.start({ ...options, snapshot, seed });
        const note = await machine.run(0, 'cat /root/note; cut -f 1 /proc/sys/kernel/printk', limits);
        const random = await machine.check(0, 'cat /proc/sys/kernel/random/uuid');
        expect(note.output).toBe('prepared\n7\n');
        seen.push([note.beganPs, note.endedPs, random]);
        machine.close();
      }
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[2]![2]).not.toBe(seen[0]![2]);
    });

    it('is refused after a driver has accessed the HCA, and by a machine of other memory', async () => {
      const machine = await LinuxMachine.start(options);
      const snapshot = await machine.snapshot();
      const sleep = machine.host(0).start('sleep 1', limits);
      await expect(machine.snapshot()).rejects.toThrow('a command still runs in host0');
      await machine.finish(sleep);
      await machine.check(0, 'modprobe mlx4_core');
      await expect(machine.snapshot()).rejects.toThrow(/has accessed the HCA \d+ times/);
      machine.close();
      const other = { ...options, pc: { ...slowPc, memoryMib: 192 }, snapshot };
      await expect(LinuxMachine.start(other)).rejects.toThrow('of the same kernel, files and PC');
    });
  },
);
