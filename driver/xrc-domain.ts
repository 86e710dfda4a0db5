/**
 * XRC domains: the numbers by which SRQs and target QPs belong together, also of several processes that open the domain of one
 * file. As in mlx4_ib, a domain has a protection domain and a CQ of its own, which its target QPs have in their contexts: the
 * SRQs determine what their messages may reach, and where they complete.
 *
 * A target has no work requests. The send queue that its context must name is an empty page of the kernel. Sources: interface
 * sheet 5.1, 5.5; Linux 6.1, drivers/infiniband/hw/mlx4/main.c (mlx4_ib_alloc_xrcd), core/uverbs_cmd.c (ib_uverbs_open_xrcd);
 * golden captures, x-xrc-pingpong.
 */
import { CapabilityFlag, controlSegment, hasCapability, icmPageBytes } from '../abi/index.ts';
import { ContextMemory } from './context-memory.ts';
import { type CompletionQueue, createCq, destroyCq } from './cq.ts';
import type { Device } from './device.ts';
import { givePages, takePages } from './donation.ts';
import { KernelError, require } from './kernel-error.ts';
import { kernelProcess } from './kernel-process.ts';
import { Mutex } from './mutex.ts';
import type { Cpu, Signal } from './platform.ts';
import type { TargetEntry } from './shared-target.ts';
import { OpenFlag } from './uapi.ts';
import { mapBuffer, type UserBuffer, unmapBuffer } from './user-buffer.ts';

/** Entries that Linux allocates for a CQ of one entry. */
const cqEntries = 2;
const recordOffset = icmPageBytes / 2;

export interface XrcDomain {
  readonly xrcdn: number;
  readonly pdn: number;
  readonly cqn: number;
  /** Number of the file in the host; -1 for a private domain. */
  readonly file: number;
  openers: number;
  /** Targets by their numbers, for later openers. */
  readonly targets: Map<number, TargetEntry>;
}

/** Queues of a target in its context: see above. */
export interface IdleSendQueue {
  readonly logWqes: number;
  readonly logStride: number;
  readonly buffer: UserBuffer;
}

const idle = { logWqes: 6, logStride: 6 } as const;

interface Parts {
  readonly page: number;
  readonly cq: CompletionQueue;
}

/** The domains of a device. Serialises calls of all processes: while a domain is being created or destroyed, it neither exists nor is absent. */
export class XrcDomains {
  readonly #parts = new Map<XrcDomain, Parts>();
  readonly #lock: Mutex;
  readonly #memory = new ContextMemory(kernelProcess);

  constructor(newSignal: () => Signal) {
    this.#lock = new Mutex(newSignal);
  }

  /**
   * Opens the domain of a file, which another process may have opened already, or a new one without a file.
   * @throws KernelError EOPNOTSUPP, EAGAIN if the domain does not exist and is not to be created, EINVAL, ENOMEM
   */
  open(cpu: Cpu, device: Device, uarPage: number, file: number, flags: number): Promise<XrcDomain> {
    return this.#lock.run(cpu, () => this.#open(cpu, device, uarPage, file, flags));
  }

  /** Closes it once; the last opener destroys it. */
  close(cpu: Cpu, device: Device, domain: XrcDomain): Promise<void> {
    return this.#lock.run(cpu, () => this.#close(cpu, device, domain));
  }

  async #open(cpu: Cpu, device: Device, uarPage: number, file: number, flags: number): Promise<XrcDomain> {
    if (!hasCapability(device.limits.capabilityFlags, CapabilityFlag.XRC))
      throw new KernelError('EOPNOTSUPP', 'the device has no XRC');
    const known = file < 0 ? undefined : [...this.#parts.keys()].find((domain) => domain.file === file);
    require(known === undefined ||
      (flags & OpenFlag.O_EXCL) === 0, `file ${file} has an XRC domain, expected none with O_EXCL`);
    if (known !== undefined) {
      known.openers++;
      return known;
    }
    if (file >= 0 && (flags & OpenFlag.O_CREAT) === 0)
      throw new KernelError('EAGAIN', `file ${file} has no XRC domain, and O_CREAT is not set`);
    return this.#make(cpu, device, uarPage, file);
  }

  async #close(cpu: Cpu, device: Device, domain: XrcDomain): Promise<void> {
    domain.openers--;
    if (domain.openers > 0) return;
    const { page, cq } = this.#parts.get(domain)!;
    await destroyCq(cpu, device, this.#memory, cq);
    device.platform.memory.freeFrames(page, 1);
    device.numbers.pds.release(domain.pdn);
    device.numbers.xrcds.release(domain.xrcdn);
    this.#parts.delete(domain);
  }

  async #make(cpu: Cpu, device: Device, uarPage: number, file: number): Promise<XrcDomain> {
    const { pds, xrcds } = device.numbers;
    const xrcdn = xrcds.allocate();
    const pdn = pds.allocate();
    const page = xrcdn < 0 || pdn < 0 ? -1 : device.platform.memory.allocateFrames(1);
    try {
      if (page < 0) throw new KernelError('ENOMEM', 'no number or no page for an XRC domain is left');
      const request = {
        entries: cqEntries,
        bufferAddress: page,
        doorbellRecordAddress: page + recordOffset,
        channel: -1,
        completionVector: 0,
      };
      const cq = await createCq(cpu, device, this.#memory, uarPage, request, { asyncEvent: () => {} });
      const domain = { xrcdn, pdn, cqn: cq.cqn, file, openers: 1, targets: new Map<number, TargetEntry>() };
      this.#parts.set(domain, { page, cq });
      return domain;
    } catch (error) {
      if (page >= 0) device.platform.memory.freeFrames(page, 1);
      if (pdn >= 0) pds.release(pdn);
      if (xrcdn >= 0) xrcds.release(xrcdn);
      throw error;
    }
  }
}

/** An empty send queue. */
export async function makeIdleQueue(cpu: Cpu, device: Device): Promise<IdleSendQueue> {
  const { memory } = device.platform;
  const [run] = takePages(memory, 1);
  const { address } = run!;
  for (let wqe = 0; wqe < 2 ** idle.logWqes; wqe++)
    controlSegment.fields.owner.set(memory.view, address + wqe * 2 ** idle.logStride, 1);
  try {
    return { ...idle, buffer: await mapBuffer(cpu, device, kernelProcess, address, icmPageBytes) };
  } catch (error) {
    givePages(memory, [run!]);
    throw error;
  }
}

export async function releaseIdleQueue(cpu: Cpu, device: Device, { buffer }: IdleSendQueue): Promise<void> {
  await unmapBuffer(cpu, device, kernelProcess, buffer);
  device.platform.memory.freeFrames(buffer.pages.address, 1);
}
