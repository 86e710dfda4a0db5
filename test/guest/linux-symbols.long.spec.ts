/**
 * Names of addresses in a running kernel: those read out of the kernel's file and its modules' files are those that the kernel
 * prints, which takes it half a billion instructions.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cpioFiles } from '../../guests/linux/image/cpio-files.ts';
import { kallsymsOf, type TextSymbol } from '../../guests/linux/image/kallsyms.ts';
import { moduleSymbols } from '../../guests/linux/image/module-symbols.ts';
import { insideKernelNames } from '../../guests/linux/index.ts';
import { LinuxMachine } from '../../guests/linux/inside/index.ts';
import { cache, reasonAgainstInside } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const textOf = ({ address, name }: TextSymbol): string => `${address.toString(16).padStart(8, '0')} ${name}`;
const sectionLine = /^\/sys\/module\/(\w+)\/sections\/(\S+):0x(\w+)$/;

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('the symbols of a guest', () => {
  it.each(insideKernelNames)('are those that kernel %s and its modules print', async (kernel) => {
    expect(reason).toBeUndefined();
    const machine = await LinuxMachine.start({ kernel, cache });
    await machine.check(0, 'modprobe -a mlx4_ib ib_uverbs', 'loading the drivers', 60);
    const lines = async (command: string): Promise<string[]> =>
      (await machine.check(0, command, command, 60)).trim().split(/\r?\n/);
    const printed = await lines("grep -E ' [tTwW] ' /proc/kallsyms");
    const own = printed.filter((line) => !line.includes('[')).map((line) => line.replace(/ . /, ' '));
    expect(own.length).toBeGreaterThan(10_000);
    expect(kallsymsOf(readFileSync(machine.files.vmlinux!))!.map(textOf)).toEqual(own);

    const sections = await lines('grep -H . /sys/module/*/sections/.*text*');
    const files = cpioFiles(readFileSync(machine.files.initramfs), (path) => path.endsWith('.ko'));
    for (const module of ['mlx4_core', 'mlx4_ib', 'ib_core', 'ib_uverbs']) {
      const addresses = new Map(
        sections.flatMap((line) => {
          const [, owner, section, address] = sectionLine.exec(line) ?? [];
          return owner === module && !section!.startsWith('.init')
            ? [[section!, Number.parseInt(address!, 16)] as const]
            : [];
        }),
      );
      const [, file] = [...files].find(([path]) => basename(path, '.ko') === module)!;
      const ofModule = printed
        .filter((line) => line.endsWith(`[${module}]`))
        .map((line) => line.replace(/\t.*/, '').replace(/ . /, ' '));
      expect(moduleSymbols(file, addresses).map(textOf).sort()).toEqual(ofModule.sort());
    }
  });
});
