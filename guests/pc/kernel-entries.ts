/**
 * The time of a PC's processor by what it worked for: a program, a system call, an exception, an interrupt's handler, or the kernel by
 * itself. An account is kept for each, and all of them add up to the PC's clock.
 *
 *     a stack of the kernel   user ─ INT 0x80, SYSENTER ─► call ─ exception ─► … ─ interrupt ─► handler ─ IRET ─► call ─ IRET, SYSEXIT ─► user
 *     POPF in the kernel      continues the context of the stack in use: after a switch of stacks, Linux restores the flags by POPF
 *                             (arch/x86/entry/entry_32.S, __switch_to_asm)
 *
 * Time is charged to the innermost of these: an interrupt within a system call is not charged to the call. At each
 * event all instructions are counted that ran before it, compiled (core-events.ts) or interpreted
 * (interpreted-count.ts). None is lost or counted twice.
 */
import { CoreEvent } from './core-events.ts';
import type { PcTimeAccount } from './pc-clock.ts';
import type { AccessKind } from './pc-profile.ts';

/** `kernel`: threads of the kernel, its idle loop, and new processes until they first run a program. */
export type ContextKind = 'user' | 'call' | 'exception' | 'interrupt' | 'kernel';

/** A system call as it begins. */
export interface SystemCall {
  /** EAX. */
  readonly number: number;
  /** EBX, ECX, EDX. */
  readonly parameters: readonly [number, number, number];
  /** Memory of the program; undefined unless all of it is present. */
  readonly bytesAt: (address: number, lengthBytes: number) => Uint8Array | undefined;
}

/** Conventions of the kernel that runs. */
export interface KernelConventions {
  /** Vector of INT for system calls. */
  readonly callVector: number;
  /** All memory is mapped from this address on, and every thread's stack is there; those of the entry code are not. */
  readonly directMapAddress: number;
  /** Size of a thread's stack, a power of two, to which it is aligned. */
  readonly stackBytes: number;
  /** A thread that has never run has no more than this on its stack, and others have more. */
  readonly freshStackBytes: number;
  /** Further distinguishes a system call, such as by what it is asked for. */
  readonly nameOf: (call: SystemCall) => string;
}

/** Costs of a context. */
export interface ContextCost {
  readonly kind: ContextKind;
  /** Vector, or number of the system call; 0 for others. */
  readonly number: number;
  /** Name that {@link KernelConventions.nameOf} returns for a system call; the path of a program, if known. */
  readonly name: string | undefined;
  /** Whether messages of the HCA have this vector. */
  isDevice: boolean;
  /** Times that it began. */
  entries: number;
  instructions: number;
  loads: number;
  stores: number;
  configurationAccesses: number;
  readonly time: { -readonly [Key in keyof PcTimeAccount]: PcTimeAccount[Key] };
}

/** The processor at an event. */
export interface EntriesHost {
  readonly privilege: number;
  readonly registers: Int32Array;
  readonly account: PcTimeAccount;
  readonly instructionCount: number;
  readonly memoryBytes: number;
  /** Path of the program whose page tables are in use. */
  readonly program: string | undefined;
  readonly bytesAt: (address: number, lengthBytes: number) => Uint8Array | undefined;
}

interface Frame {
  readonly cost: ContextCost;
  /** Stack pointer before the entry; -1 if that was the program's. */
  readonly stackPointer: number;
}

interface Stack {
  frames: Frame[];
  isUser: boolean;
}

const userPrivilege = 3;
const privilegeMask = 3;
const exceptionVectors = 32;
/** Bytes that IRET pops within the kernel: EIP, CS, EFLAGS; and the offset of CS. */
const frameBytes = 12;
const selectorOffset = 4;
/** Exceptions and interrupts of a working kernel never nest deeper than this. */
const framesMax = 64;
const [EAX, ECX, EDX, EBX, ESP] = [0, 1, 2, 3, 4] as const;
const accessFields = { load: 'loads', store: 'stores', configuration: 'configurationAccesses' } as const;

export class KernelEntries {
  readonly #conventions: KernelConventions;
  readonly #host: EntriesHost;
  readonly #costs = new Map<string, ContextCost>();
  readonly #stacks = new Map<number, Stack>();
  readonly #deviceVectors = new Set<number>();
  #stack: Stack;
  #isReturning = false;
  #lastInstructions = 0;
  #lastAccount: PcTimeAccount;
  /** Delivery of interrupts that no handler has begun for. */
  #deliveryPs = 0;

  constructor(conventions: KernelConventions, host: EntriesHost) {
    this.#conventions = conventions;
    this.#host = host;
    this.#lastAccount = host.account;
    this.#lastInstructions = host.instructionCount;
    this.#stack = this.#stackNow();
  }

  /** Forgets what was counted so far, but not where the processor is. */
  begin(): void {
    const { account, instructionCount } = this.#host;
    this.#costs.clear();
    this.#deliveryPs = 0;
    this.#lastAccount = account;
    this.#lastInstructions = instructionCount;
    for (const stack of this.#stacks.values())
      stack.frames = stack.frames.map(({ cost, stackPointer }) => ({
        cost: this.#costOf(cost.kind, cost.number, cost.name),
        stackPointer,
      }));
  }

  /** A PC was restored, with the account that it had when it was saved: the profile begins at that account and excludes earlier time. */
  restored(): void {
    this.#stacks.clear();
    this.#stack = this.#stackNow();
    this.begin();
  }

  /** A copy of the accounts, up to now. */
  costs(): ContextCost[] {
    this.#charge();
    if (this.#deliveryPs > 0) {
      this.#current().time.interruptsPs += this.#deliveryPs;
      this.#deliveryPs = 0;
    }
    return [...this.#costs.values()].map((cost) => ({
      ...cost,
      isDevice: cost.kind === 'interrupt' && this.#deviceVectors.has(cost.number),
      time: { ...cost.time },
    }));
  }

  /** A message of the HCA with this vector has reached the processor. */
  deviceInterrupt(vector: number): void {
    this.#deviceVectors.add(vector);
  }

  /** An access of the HCA has ended. */
  accessed(kind: AccessKind): void {
    this.#current()[accessFields[kind]]++;
  }

  /** An event of the core (core-events.ts), before it takes effect. */
  event(event: number, value: number): void {
    const wasReturning = this.#isReturning;
    this.#isReturning = event === CoreEvent.IRET;
    if (event === CoreEvent.POPF) {
      // IRET sets the flags by the same function.
      if (!wasReturning && this.#host.privilege !== userPrivilege) this.#switched();
    } else if (event === CoreEvent.IRET) {
      this.#returned();
    } else if (event === CoreEvent.SYSEXIT) {
      this.#leave();
    } else if (event === CoreEvent.SYSENTER) {
      this.#call();
    } else {
      this.#vector(value, event === CoreEvent.SOFTWARE_VECTOR);
    }
  }

  #vector(vector: number, isSoftware: boolean): void {
    if (isSoftware && vector === this.#conventions.callVector) this.#call();
    else this.#enter(vector < exceptionVectors || isSoftware ? 'exception' : 'interrupt', vector, undefined);
  }

  #call(): void {
    const { registers, bytesAt } = this.#host;
    const number = registers[EAX]!;
    const parameters = [registers[EBX]! >>> 0, registers[ECX]! >>> 0, registers[EDX]! >>> 0] as const;
    this.#enter('call', number, this.#conventions.nameOf({ number, parameters, bytesAt }));
  }

  #enter(kind: ContextKind, number: number, name: string | undefined): void {
    this.#charge();
    const { privilege, registers } = this.#host;
    const isFromUser = privilege === userPrivilege;
    const stack = this.#stack;
    if (isFromUser || stack.frames.length >= framesMax) stack.frames = [];
    stack.isUser = false;
    const cost = this.#costOf(kind, number, name);
    cost.entries++;
    if (kind === 'interrupt') {
      cost.time.interruptsPs += this.#deliveryPs;
      this.#deliveryPs = 0;
    }
    stack.frames.push({ cost, stackPointer: isFromUser ? -1 : registers[ESP]! >>> 0 });
  }

  /** IRET: to the program, or to the code of the kernel whose stack pointer it restores. Linux also synchronizes a core by one. */
  #returned(): void {
    const { registers, bytesAt } = this.#host;
    const stackPointer = registers[ESP]! >>> 0;
    const selector = bytesAt(stackPointer + selectorOffset, 1)?.[0] ?? 0;
    if ((selector & privilegeMask) === userPrivilege) this.#leave();
    else if (this.#stack.frames.at(-1)?.stackPointer === stackPointer + frameBytes) {
      this.#charge();
      this.#stack.frames.pop();
    }
  }

  #leave(): void {
    this.#charge();
    this.#stack.frames = [];
    this.#stack.isUser = true;
  }

  #switched(): void {
    const { registers, memoryBytes } = this.#host;
    const offset = (registers[ESP]! >>> 0) - this.#conventions.directMapAddress;
    if (offset < 0 || offset >= memoryBytes) return;
    const stack = this.#stackNow();
    if (stack === this.#stack) return;
    this.#charge();
    this.#stack = stack;
    const used = -registers[ESP]! & (this.#conventions.stackBytes - 1);
    if (used > this.#conventions.freshStackBytes) return;
    // The stack of an ended thread, which a new one has.
    stack.frames = [];
    stack.isUser = false;
  }

  /** The stack in use: of an unknown thread while a program runs. */
  #stackNow(): Stack {
    const { privilege, registers } = this.#host;
    const isUser = privilege === userPrivilege;
    const base = isUser ? -1 : (registers[ESP]! & ~(this.#conventions.stackBytes - 1)) >>> 0;
    const stack = this.#stacks.get(base) ?? { frames: [], isUser };
    this.#stacks.set(base, stack);
    return stack;
  }

  #current(): ContextCost {
    const { frames, isUser } = this.#stack;
    const top = frames.at(-1);
    if (top !== undefined) return top.cost;
    return isUser ? this.#costOf('user', 0, this.#host.program) : this.#costOf('kernel', 0, undefined);
  }

  #costOf(kind: ContextKind, number: number, name: string | undefined): ContextCost {
    const key = `${kind} ${number} ${name ?? ''}`;
    const known = this.#costs.get(key);
    if (known !== undefined) return known;
    const none = { executingPs: 0, loadsPs: 0, storesPs: 0, interruptsPs: 0 };
    const cost: ContextCost = {
      ...{ kind, number, name, isDevice: false, entries: 0, instructions: 0, loads: 0, stores: 0 },
      configurationAccesses: 0,
      time: { ...none, wakingPs: 0, chancePs: 0, idlePs: 0 },
    };
    this.#costs.set(key, cost);
    return cost;
  }

  /** Charges the time since the last event. Delivery of an interrupt is its handler's. */
  #charge(): void {
    const { account, instructionCount } = this.#host;
    const cost = this.#current();
    cost.instructions += instructionCount - this.#lastInstructions;
    for (const kind of timeKinds) {
      const ps = account[kind] - this.#lastAccount[kind];
      if (kind === 'interruptsPs') this.#deliveryPs += ps;
      else cost.time[kind] += ps;
    }
    this.#lastAccount = account;
    this.#lastInstructions = instructionCount;
  }
}

const timeKinds = [
  ...(['executingPs', 'loadsPs', 'storesPs', 'interruptsPs', 'wakingPs', 'chancePs', 'idlePs'] as const),
] satisfies readonly (keyof PcTimeAccount)[];
