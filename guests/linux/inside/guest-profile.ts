/**
 * Where the processor of a Linux in this process spent its time, by function and by program.
 *
 *     instructions   sampled at the ends of quanta (guests/pc/pc-profile.ts): right in sum, blurred by a quantum
 *     accesses       exact, by the instruction that made them
 *
 * The kernel's functions have their names; a program's have not, so all of a program is one row. The rows add up to the
 * instructions and accesses of the PC's clock.
 */
import { type PcProfileCounts, type ProfileMode, UNTIL_HALT } from '../../pc/index.ts';
import type { GuestFunction, GuestSymbols } from './guest-symbols.ts';

/** `halting`: instructions of quanta that ended by a halt, from whichever function. */
type GuestMode = ProfileMode | 'halting';

/** A function of the kernel, or a program. */
export interface ProfiledFunction {
  readonly mode: GuestMode;
  /** Mode `kernel`: `kernel`, or the name of a module; undefined for an address of neither. */
  readonly module: string | undefined;
  /** Mode `kernel`: its name, if it is known. */
  readonly name: string | undefined;
  /** Mode `user`: path of the program, if it is known. */
  readonly program: string | undefined;
  readonly instructions: number;
  /** Quanta that ended in it. */
  readonly samples: number;
  readonly loads: number;
  readonly stores: number;
  readonly configurationAccesses: number;
  /** Time of its instructions, and of its accesses of the device. */
  readonly executingPs: number;
  readonly accessesPs: number;
}

/** An address space: a process, or what the kernel did while its page tables were in use. */
export interface ProfiledProgram {
  readonly program: string | undefined;
  /** Address of the page directory; Linux uses that of an ended process again. */
  readonly pageDirectory: number;
  readonly userInstructions: number;
  /** With those of interrupts and of the kernel's threads, which use the address space of the process before them. */
  readonly kernelInstructions: number;
}

export interface GuestProfile
  extends Pick<PcProfileCounts, 'instructionCount' | 'halts' | 'interrupts' | 'account' | 'contexts'> {
  readonly name: string;
  readonly instructionsByMode: Readonly<Record<GuestMode, number>>;
  /** Largest time first. */
  readonly functions: readonly ProfiledFunction[];
  /** Most instructions first. */
  readonly programs: readonly ProfiledProgram[];
  /** False if the guest could not be asked for the addresses of its modules: their functions are then without module and name. */
  readonly areModulesKnown: boolean;
}

type Sums = { -readonly [Key in keyof ProfiledFunction]: ProfiledFunction[Key] };

export function guestProfileOf(
  name: string,
  counts: PcProfileCounts,
  symbols: GuestSymbols,
  areModulesKnown: boolean,
): GuestProfile {
  const { instructionCount, halts, interrupts, account, contexts } = counts;
  const functions = functionsOf(counts, symbols);
  const sumOf = (mode: GuestMode): number =>
    functions.filter((each) => each.mode === mode).reduce((sum, { instructions }) => sum + instructions, 0);
  return {
    ...{ name, instructionCount, halts, interrupts, account, contexts, areModulesKnown },
    instructionsByMode: { kernel: sumOf('kernel'), user: sumOf('user'), halting: sumOf('halting') },
    functions: functions.sort(
      (a, b) => timeOf(b) - timeOf(a) || (functionText(a) < functionText(b) ? -1 : 1),
    ),
    programs: programsOf(counts),
  };
}

/** Time of a function's instructions and accesses. */
export const timeOf = ({ executingPs, accessesPs }: ProfiledFunction): number => executingPs + accessesPs;

/** A function in words: `mlx4_core: mlx4_cq_event`, `program ib_write_lat`. */
export function functionText({ mode, module, name, program }: ProfiledFunction): string {
  if (mode === 'halting') return '(quanta that ended by a halt)';
  if (mode === 'user') return `program ${baseName(program)}`;
  const place = module === 'kernel' || module === undefined ? '' : `${module}: `;
  return `${place}${name ?? (module === undefined ? '(outside of known text)' : '(no symbol)')}`;
}

/** Name of a program's file. */
export const baseName = (program: string | undefined): string => program?.split('/').at(-1) ?? '(not known)';

function functionsOf(
  { instructions, accesses, account, instructionCount }: PcProfileCounts,
  symbols: GuestSymbols,
): Sums[] {
  const psOfInstruction = instructionCount === 0 ? 0 : account.executingPs / instructionCount;
  const rows = new Map<string, Sums>();
  const rowOf = (mode: GuestMode, address: number, program: string | undefined): Sums => {
    const place: GuestFunction =
      mode === 'kernel' ? symbols.at(address) : { module: undefined, name: undefined };
    const key = [mode, place.module, place.name, program].join('\0');
    const row = rows.get(key) ?? {
      ...{ mode, ...place, program, instructions: 0, samples: 0, loads: 0, stores: 0 },
      ...{ configurationAccesses: 0, executingPs: 0, accessesPs: 0 },
    };
    rows.set(key, row);
    return row;
  };
  for (const each of instructions) {
    const mode = each.address === UNTIL_HALT ? 'halting' : each.mode;
    const row = rowOf(mode, each.address, mode === 'user' ? each.program : undefined);
    row.instructions += each.instructions;
    row.samples += each.samples;
    row.executingPs = row.instructions * psOfInstruction;
  }
  for (const { mode, address, program, kind, count, durationPs } of accesses) {
    const row = rowOf(mode, address, mode === 'user' ? program : undefined);
    if (kind === 'load') row.loads += count;
    else if (kind === 'store') row.stores += count;
    else row.configurationAccesses += count;
    row.accessesPs += durationPs;
  }
  return [...rows.values()];
}

function programsOf({ instructions }: PcProfileCounts): ProfiledProgram[] {
  const rows = new Map<string, { -readonly [Key in keyof ProfiledProgram]: ProfiledProgram[Key] }>();
  for (const { cr3, program, mode, instructions: count } of instructions) {
    const key = `${cr3} ${program ?? ''}`;
    const row = rows.get(key) ?? {
      ...{ program, pageDirectory: cr3, userInstructions: 0, kernelInstructions: 0 },
    };
    rows.set(key, row);
    if (mode === 'user') row.userInstructions += count;
    else row.kernelInstructions += count;
  }
  return [...rows.values()].sort(
    (a, b) => instructionsOf(b) - instructionsOf(a) || a.pageDirectory - b.pageDirectory,
  );
}

const instructionsOf = ({ userInstructions, kernelInstructions }: ProfiledProgram): number =>
  userInstructions + kernelInstructions;
