/** Checks of the account of a guest's processor that hold for each polling program. */
import { expect } from 'vitest';
import type {
  GuestProfile,
  LinuxMachine,
  PcTimeAccount,
  ProfiledFunction,
} from '../../guests/linux/inside/index.ts';

/** 2500 MHz, an instruction each cycle. */
const psOfInstruction = 400;

export interface PollingRun {
  readonly command: string;
  readonly program: string;
  /** Stores of the program to the device, by its interface. */
  readonly stores: number;
}

const totalPs = (account: PcTimeAccount): number => Object.values(account).reduce((sum, ps) => sum + ps, 0);

/** Runs a polling program on both sides of a loopback plug, and checks its profile. */
export async function checkedProfile(
  machine: LinuxMachine,
  { command, program, stores }: PollingRun,
): Promise<GuestProfile> {
  const { pc } = machine.host(0);
  machine.beginCpuProfile();
  const before = pc.clock.instructionCount;
  await machine.check(0, command, program, 60);
  const counted = pc.clock.instructionCount - before;
  const [profile] = await machine.cpuProfile();
  const { functions, account, instructionCount, instructionsByMode, interrupts, halts } = profile!;
  const sumOf = (what: (each: ProfiledFunction) => number): number =>
    functions.reduce((sum, each) => sum + what(each), 0);

  expect(instructionCount).toBe(counted);
  expect(sumOf(({ instructions }) => instructions)).toBe(counted);
  expect(sumOf(({ executingPs }) => executingPs)).toBe(counted * psOfInstruction);
  expect(sumOf(({ accessesPs }) => accessesPs)).toBe(account.loadsPs + account.storesPs);
  expect(Object.values(instructionsByMode).reduce((sum, count) => sum + count)).toBe(counted);

  // The costs by context are all of the time, and each message of the HCA has begun a handler.
  const contexts = profile!.contexts!;
  const ofContexts = (what: (each: (typeof contexts)[number]) => number): number =>
    contexts.reduce((sum, each) => sum + what(each), 0);
  expect(ofContexts(({ time }) => totalPs(time))).toBe(totalPs(account));
  expect(ofContexts((each) => each.instructions)).toBe(counted);
  expect(ofContexts((each) => each.stores)).toBe(sumOf((each) => each.stores));
  expect(ofContexts((each) => each.loads)).toBe(sumOf((each) => each.loads));
  const handlers = contexts.filter(({ isDevice }) => isDevice);
  expect(handlers.reduce((sum, { entries }) => sum + entries, 0)).toBe(interrupts.messages);
  expect(contexts.some(({ name }) => /^ioctl reg_mr \d+ bytes$/.test(name ?? ''))).toBe(true);

  const [most] = functions;
  expect(most!.program).toBe(program);
  expect(most!.instructions).toBeGreaterThan(counted / 2);
  expect(most!.stores).toBe(stores);
  expect(most!.loads).toBe(0);

  // The driver loads only to see whether a command may be posted, and arms its event queue once in each interrupt.
  expect(functions.filter(({ loads }) => loads > 0).map(({ name }) => name)).toEqual(['mlx4_cmd_post']);
  const arming = functions.find(
    ({ module, name }) => module === 'mlx4_core' && /^eq_set_ci/.test(name ?? ''),
  );
  expect(arming!.stores).toBe(interrupts.messages);
  expect(interrupts.messages).toBeGreaterThan(0);
  expect(halts).toBeGreaterThan(0);
  // Every sample of the kernel lies in a function with a name.
  expect(functions.filter(({ mode, name }) => mode === 'kernel' && name === undefined)).toEqual([]);
  return profile!;
}
