/**
 * Where a PC's processor spent its instructions and its accesses of the device.
 *
 *     instructions   sampled: those of a quantum are charged to the address at which it ended
 *     accesses       exact: each is charged, with its time, to the instruction that made it
 *
 * A sample is as fine as a quantum, and not at random: quanta end where v86 can leave compiled code (at loops that run long, at
 * string and port instructions, and between pages), after a store to the device, and when the processor halts. So a function
 * can be charged with the instructions of others before it. When Linux makes random numbers, the cipher's instructions are charged to
 * `memset` with quanta of 25,000 instructions, and to the cipher with quanta of 500.
 *
 * The instructions of a quantum that ended by a halt have {@link UNTIL_HALT} as their address: they led to the halt, and are not
 * the halt's. Each instruction since {@link PcProfile.begin} is counted once, so the sums are those of the PC's clock.
 */
import type { CorePosition } from './core-position.ts';
import type { ContextCost, KernelConventions } from './kernel-entries.ts';
import type { PageTables } from './page-tables.ts';
import type { PcTimeAccount } from './pc-clock.ts';

/** Privilege of the instructions: levels 0 to 2, or 3. */
export type ProfileMode = 'kernel' | 'user';

/** Address of instructions of which only is known that they were followed by a halt. */
export const UNTIL_HALT = -1;

/** Interrupts of the function so far. */
export interface PcInterruptCounts {
  messages: number;
  pins: number;
}

export interface PcProfileOptions {
  /** Limit of every quantum, which makes samples finer; devices then catch up as often. Left out: quanta are as without a profile. */
  readonly quantumInstructions?: number;
  /** Names the program in whose page tables the processor works; asked when they change. */
  readonly programOf?: (tables: PageTables) => string | undefined;
  /** Left out: no account by system call, exception and interrupt is kept. */
  readonly kernel?: KernelConventions;
}

/** Instructions at an address in an address space. */
export interface ProfiledInstructions {
  readonly mode: ProfileMode;
  readonly address: number;
  /** Page directory in use. The kernel's threads and interrupts use those of the program that ran before them. */
  readonly cr3: number;
  /** Name of that program, if it is known. */
  readonly program: string | undefined;
  /** Instructions charged to this address, and the number of samples that did so. */
  instructions: number;
  samples: number;
}

/** `configuration`: loads and stores of configuration space, by memory accesses or ports. */
export type AccessKind = 'load' | 'store' | 'configuration';

/** Accesses of the device by the instruction at an address. */
export interface ProfiledAccesses {
  readonly mode: ProfileMode;
  readonly address: number;
  readonly cr3: number;
  readonly program: string | undefined;
  readonly kind: AccessKind;
  count: number;
  /** Time that they took the processor, apart from their own instructions. */
  durationPs: number;
}

/** Everything counted since the profile began. */
export interface PcProfileCounts {
  readonly instructions: readonly ProfiledInstructions[];
  readonly accesses: readonly ProfiledAccesses[];
  readonly instructionCount: number;
  /** HLT instructions. */
  readonly halts: number;
  /** Interrupts that the device has raised. Those of timers are not known: v86 keeps them to itself. */
  readonly interrupts: Readonly<PcInterruptCounts>;
  /** Elapsed time, of which `executingPs` is the instructions' and `loadsPs` and `storesPs` are the accesses'. */
  readonly account: PcTimeAccount;
  /** By system call, exception and interrupt, whose sum is the account; undefined unless the conventions of the kernel are known. */
  readonly contexts: readonly ContextCost[] | undefined;
}

const userPrivilege = 3;
const modeOf = (privilege: number): ProfileMode => (privilege === userPrivilege ? 'user' : 'kernel');

export class PcProfile {
  readonly position: CorePosition;
  readonly #programOf: (cr3: number) => string | undefined;
  readonly #instructions = new Map<string, Map<number, ProfiledInstructions>>();
  readonly #accesses = new Map<string, Map<number, ProfiledAccesses>>();
  #instructionCount = 0;
  #haltsBefore = 0;
  #interruptsBefore: Readonly<PcInterruptCounts> = { messages: 0, pins: 0 };
  #accountBefore: PcTimeAccount | undefined;
  #cr3 = -1;
  #program: string | undefined;

  /** @param programOf names the program of a page directory */
  constructor(position: CorePosition, programOf: (cr3: number) => string | undefined) {
    this.position = position;
    this.#programOf = programOf;
  }

  /** Forgets what was counted so far. */
  begin(account: PcTimeAccount, interrupts: Readonly<PcInterruptCounts>): void {
    this.#accountBefore = account;
    this.#interruptsBefore = { ...interrupts };
    this.#instructions.clear();
    this.#accesses.clear();
    this.#instructionCount = 0;
    this.#haltsBefore = this.position.haltCount;
  }

  /** A quantum with this number of instructions has ended. */
  quantumEnded(instructions: number): void {
    const { position } = this;
    position.end();
    if (instructions === 0) return;
    const { cr3 } = position;
    const program = this.programAt(cr3);
    const mode = modeOf(position.privilege);
    const address = position.isHalted ? UNTIL_HALT : position.eip;
    const cell = cellOf(this.#instructions, `${mode} ${cr3} ${program ?? ''}`, address, () => ({
      ...{ mode, address, cr3, program, instructions: 0, samples: 0 },
    }));
    cell.instructions += instructions;
    cell.samples++;
    this.#instructionCount += instructions;
  }

  /** The instruction that the core executes has accessed the device, for `durationPs`. */
  accessed(kind: AccessKind, privilege: number, cr3: number, durationPs: number): void {
    const mode = modeOf(privilege);
    const address = this.position.accessAddress;
    const program = this.programAt(cr3);
    const cell = cellOf(this.#accesses, `${mode} ${kind} ${cr3} ${program ?? ''}`, address, () => ({
      ...{ mode, address, cr3, program, kind, count: 0, durationPs: 0 },
    }));
    cell.count++;
    cell.durationPs += durationPs;
  }

  /** Name of the program of a page directory. */
  programAt(cr3: number): string | undefined {
    if (cr3 !== this.#cr3) {
      this.#cr3 = cr3;
      this.#program = this.#programOf(cr3);
    }
    return this.#program;
  }

  /** A copy of the counts, the PC's clock and device being at these. */
  counts(
    account: PcTimeAccount,
    interrupts: Readonly<PcInterruptCounts>,
    contexts: readonly ContextCost[] | undefined,
  ): PcProfileCounts {
    return {
      instructions: cellsOf(this.#instructions),
      accesses: cellsOf(this.#accesses),
      instructionCount: this.#instructionCount,
      halts: this.position.haltCount - this.#haltsBefore,
      interrupts: difference(interrupts, this.#interruptsBefore),
      account: difference(account, this.#accountBefore ?? account),
      contexts,
    };
  }
}

function cellOf<Cell>(
  groups: Map<string, Map<number, Cell>>,
  group: string,
  address: number,
  make: () => Cell,
): Cell {
  const cells = groups.get(group) ?? new Map<number, Cell>();
  groups.set(group, cells);
  const cell = cells.get(address) ?? make();
  cells.set(address, cell);
  return cell;
}

const cellsOf = <Cell extends object>(groups: ReadonlyMap<string, ReadonlyMap<number, Cell>>): Cell[] =>
  [...groups.values()].flatMap((cells) => [...cells.values()].map((cell) => ({ ...cell })));

function difference<Counts extends object>(now: Counts, before: Counts): Counts {
  const earlier = new Map<string, number>(Object.entries(before));
  const entries = Object.entries(now).map(([key, value]) => [key, value - earlier.get(key)!]);
  return Object.fromEntries(entries) as Counts;
}
