import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { coreCode } from './core-code.ts';
import { CoreEvent } from './core-events.ts';
import { type ContextCost, KernelEntries } from './kernel-entries.ts';
import { pcParameters } from './parameters.ts';
import type { PcTimeAccount } from './pc-clock.ts';
import { PcMachine } from './pc-machine.ts';
import { code, codeAddress, kernelOf } from './testing/machine-code.ts';

const conventions = {
  ...{ callVector: 0x80, directMapAddress: 0, stackBytes: 8192, freshStackBytes: 128 },
  nameOf: ({ number }: { readonly number: number }) => `call ${number}`,
};
const dword = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
const sumOf = (time: PcTimeAccount): number => Object.values(time).reduce((sum, ps) => sum + ps, 0);

describe('the costs of exceptions on a processor', () => {
  const [table, descriptor, segments, stack] = [0x30_0000, 0x30_1000, 0x30_2000, 0x40_0000];
  const vector = 0x81;
  /** Code segment of the Linux boot protocol (Documentation/arch/x86/boot.rst, 32-bit boot protocol). */
  const codeSegment = 0x10;
  const put = (address: number, value: number): number[] => [...code.set(value), ...code.store(address)];

  /** Calls a handler of `spins` rounds `rounds` times, by INT. */
  async function costsOf(rounds: number, spins: number): Promise<readonly ContextCost[]> {
    const jump = (from: number, to: number): number[] => [0xe9, ...dword(to - from - 5)];
    // push ecx; nop with two prefixes; mov ecx; dec, jnz in each round; pop ecx; iret; and jumps between pages.
    const handler = [0x51, 0x66, 0x3e, 0x90, ...jump(4, 4096)];
    const spinning = code.countDown(spins);
    const spin = [...spinning, ...jump(spinning.length, 4096)];
    const end = [0x59, 0xcf];
    const main = (handlerAddress: number): number[] => [
      ...put(table + 8 * vector, (codeSegment << 16) | (handlerAddress & 0xffff)),
      ...put(table + 8 * vector + 4, (handlerAddress & 0xffff_0000) | 0x8e00),
      ...put(descriptor, (table << 16) | 0x7ff),
      ...put(descriptor + 4, table >>> 16),
      // A flat code segment of 32 bits (SDM 3A, 3.4.5).
      ...[...put(segments + codeSegment, 0x0000_ffff), ...put(segments + codeSegment + 4, 0x00cf_9a00)],
      ...[...put(descriptor + 8, (segments << 16) | 0x17), ...put(descriptor + 12, segments >>> 16)],
      ...[0x0f, 0x01, 0x15, ...dword(descriptor + 8)],
      // lidt; mov esp; mov ecx; int; dec ecx; jnz.
      ...[0x0f, 0x01, 0x1d, ...dword(descriptor), 0xbc, ...dword(stack), 0xb9, ...dword(rounds)],
      ...[0xcd, vector, 0x49, 0x75, 0xfb, ...code.halt],
    ];
    const machine = await PcMachine.make({
      coreCode: coreCode(),
      config: configurationOf({ profile: 'connectx3-mps512' }),
      ...{ pc: { ...defaultsOf(pcParameters), memoryMib: 128 }, pcCount: 1, cabling: 'loopback' },
      ...{ faults: [], analysis: undefined, seed: 1, profile: { kernel: conventions } },
    });
    // The handler, its loop and its end are on pages of their own, as a kernel is to a program.
    const page = (bytes: readonly number[]): number[] => [
      ...bytes,
      ...new Array<number>(4096 - bytes.length).fill(0x90),
    ];
    machine.load([kernelOf([...page(main(codeAddress + 4096)), ...page(handler), ...page(spin), ...end])]);
    for (let steps = 0; !machine.isOver; steps++) {
      if (steps > 1_000_000) throw new Error(`no halt after ${steps} steps`);
      machine.step();
    }
    const { contexts, account, instructionCount } = machine.pcs[0]!.profile!;
    expect(contexts!.reduce((sum, { time }) => sum + sumOf(time), 0)).toBe(sumOf(account));
    expect(contexts!.reduce((sum, { instructions }) => sum + instructions, 0)).toBe(instructionCount);
    return contexts!;
  }

  it.each([
    [3, 100],
    [2000, 10],
    [20_000, 400],
  ])('are charged to the handler, %d times %d rounds, and add up to the clock', async (rounds, spins) => {
    const costs = await costsOf(rounds, spins);
    const handled = costs.find(({ kind }) => kind === 'exception')!;
    expect([handled.number, handled.entries]).toEqual([vector, rounds]);
    expect(handled.instructions).toBe(rounds * (7 + 2 * spins));
  });
});

/** A processor whose state the test sets. */
class TestHost {
  privilege = 3;
  readonly registers = new Int32Array(8);
  instructionCount = 0;
  readonly memoryBytes = 2 ** 20;
  readonly program = '/bin/program';
  selector = 0x10;
  #other = { loadsPs: 0, storesPs: 0, interruptsPs: 0, wakingPs: 0, chancePs: 0, idlePs: 0 };

  get account(): PcTimeAccount {
    return { executingPs: this.instructionCount * 10, ...this.#other };
  }

  readonly bytesAt = (_address: number, lengthBytes: number): Uint8Array =>
    new Uint8Array(lengthBytes).fill(this.selector);

  set stackPointer(address: number) {
    this.registers[4] = address;
  }

  deliver(ps: number): void {
    this.#other = { ...this.#other, interruptsPs: this.#other.interruptsPs + ps };
  }
}

describe('the costs of a kernel', () => {
  const [first, second] = [0x4000, 0x8000];
  const made = (): { readonly host: TestHost; readonly entries: KernelEntries } => {
    const host = new TestHost();
    return { host, entries: new KernelEntries(conventions, host) };
  };
  const rowsOf = (entries: KernelEntries): [string, number, number, number][] =>
    entries
      .costs()
      .map(({ kind, number, entries: count, instructions }) => [kind, number, count, instructions]);

  it('are those of a call between SYSENTER and SYSEXIT, less an interrupt in it', () => {
    const { host, entries } = made();
    host.instructionCount = 5;
    host.registers[0] = 20;
    entries.event(CoreEvent.SYSENTER, 0);
    Object.assign(host, { privilege: 0, stackPointer: first + 8000, instructionCount: 15 });
    host.deliver(500);
    entries.deviceInterrupt(40);
    entries.event(CoreEvent.VECTOR, 40);
    Object.assign(host, { stackPointer: first + 8000 - 12, instructionCount: 45 });
    entries.event(CoreEvent.IRET, 0);
    // The flags of IRET are none of a switch.
    entries.event(CoreEvent.POPF, 0);
    Object.assign(host, { stackPointer: first + 8000, instructionCount: 52 });
    entries.event(CoreEvent.SYSEXIT, 0);
    Object.assign(host, { privilege: 3, instructionCount: 60 });
    expect(rowsOf(entries)).toEqual([
      ['user', 0, 0, 13],
      ['call', 20, 1, 17],
      ['interrupt', 40, 1, 30],
    ]);
    const [, , interrupt] = entries.costs();
    expect([interrupt!.isDevice, interrupt!.time.interruptsPs]).toEqual([true, 500]);
  });

  it('go on after a switch of stacks, and end with their thread', () => {
    const { host, entries } = made();
    host.registers[0] = 1;
    entries.event(CoreEvent.SOFTWARE_VECTOR, 0x80);
    Object.assign(host, { privilege: 0, stackPointer: first + 4000, instructionCount: 10 });
    // The first switch finds the thread that runs, whose call it continues on its stack.
    Object.assign(host, { stackPointer: second + 8192 - 100, instructionCount: 30 });
    entries.event(CoreEvent.POPF, 0);
    host.instructionCount = 70;
    host.selector = 0x73;
    entries.event(CoreEvent.IRET, 0);
    Object.assign(host, { privilege: 3, instructionCount: 100 });
    entries.event(CoreEvent.SYSENTER, 0);
    Object.assign(host, { privilege: 0, stackPointer: second + 4000, instructionCount: 101 });
    // A new thread on the stack of an ended one: its call does not continue.
    Object.assign(host, { stackPointer: second + 16384 - 100, instructionCount: 111 });
    entries.event(CoreEvent.POPF, 0);
    Object.assign(host, { stackPointer: second + 8192 - 100, instructionCount: 112 });
    entries.event(CoreEvent.POPF, 0);
    host.instructionCount = 120;
    expect(rowsOf(entries)).toEqual([
      ['user', 0, 0, 30],
      ['call', 1, 2, 41],
      ['kernel', 0, 0, 49],
    ]);
  });

  it('know an IRET to the next instruction, and the stack of the entry code', () => {
    const { host, entries } = made();
    entries.event(CoreEvent.SYSENTER, 0);
    Object.assign(host, { privilege: 0, stackPointer: 2 ** 20 + 64 });
    entries.event(CoreEvent.POPF, 0);
    Object.assign(host, { stackPointer: first + 4000, instructionCount: 10 });
    entries.event(CoreEvent.IRET, 0);
    entries.event(CoreEvent.POPF, 0);
    host.instructionCount = 20;
    expect(rowsOf(entries)).toEqual([
      ['user', 0, 0, 0],
      ['call', 0, 1, 20],
    ]);
  });
});
