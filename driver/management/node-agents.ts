/**
 * The node's management agents for others on the fabric, as ib_mad and mlx4_ib: a MAD that arrives at QP0, or at QP1 for performance
 * management, is handed to the device by MAD_IFC, and the response returns to its sender.
 *
 *     QP0, QP1 ─► kernel thread ─► directed route ends here? ─► MAD_IFC ─► response ─► QP0, QP1
 *
 * Promises: MADs are answered one at a time, in the order of their arrival; one that is malformed, is a response, or wants no answer is
 * dropped. Sources: interface sheet 3.14; Linux drivers/infiniband/core/smi.c and hw/mlx4/mad.c; IBTA volume 1, 14.2.2.2.
 */
import { MadClass, MadMethod, MadStatus, mad, madBytes, madIfcModifier } from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import { MadAgent, type ReceivedMad } from '../cm/index.ts';
import type { Device } from '../device.ts';
import { KernelError } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import { arriveDirected, returnDirected } from './directed-end.ts';

const portNumber = 1;
/** Limit of MADs that wait for the device: as many as Linux posts receives. */
const waitingMax = 512;

interface Request {
  readonly mad: ReceivedMad;
  readonly agent: () => MadAgent;
}

export class NodeAgents {
  readonly #device: Device;
  readonly #waiting: Request[] = [];
  #subnet!: MadAgent;
  #general!: MadAgent;
  #isWorking = false;

  private constructor(device: Device) {
    this.#device = device;
  }

  /** Brings QP0 and QP1 up. @throws KernelError ENOMEM */
  static async open(cpu: Cpu, device: Device): Promise<NodeAgents> {
    const agents = new NodeAgents(device);
    const toSubnet = (_: Cpu, received: ReceivedMad): void =>
      agents.#take({ mad: received, agent: () => agents.#subnet });
    const toGeneral = (_: Cpu, received: ReceivedMad): void =>
      agents.#take({ mad: received, agent: () => agents.#general });
    const subnetClasses = [MadClass.SUBN_LID_ROUTED, MadClass.SUBN_DIRECTED_ROUTE];
    const ofSubnet = new Map(subnetClasses.map((each) => [each as number, toSubnet]));
    agents.#subnet = await MadAgent.open(cpu, device, ofSubnet, 'subnet');
    agents.#general = await MadAgent.open(cpu, device, new Map([[MadClass.PERF_MGMT as number, toGeneral]]));
    return agents;
  }

  async close(cpu: Cpu): Promise<void> {
    await this.#general.close(cpu);
    await this.#subnet.close(cpu);
  }

  #take(request: Request): void {
    if (this.#waiting.length === waitingMax) return;
    this.#waiting.push(request);
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#device.platform.spawn('ib_mad_agent', (cpu) => this.#work(cpu));
  }

  async #work(cpu: Cpu): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { from, bytes } = next.mad;
      const response = await this.#answer(cpu, bytes, from.lid);
      if (response !== undefined) next.agent().send(cpu, response, from);
      await cpu.settle();
    }
    this.#isWorking = false;
  }

  async #answer(cpu: Cpu, request: Uint8Array, sourceLid: number): Promise<Uint8Array | undefined> {
    const view = viewOf(request);
    if (mad.fields.method.get(view, 0) > 0x7f) return undefined;
    const isDirected = mad.fields.managementClass.get(view, 0) === MadClass.SUBN_DIRECTED_ROUTE;
    if (isDirected && !arriveDirected(view, portNumber)) return undefined;
    const response = await this.#ask(cpu, request, sourceLid);
    const responseView = viewOf(response);
    if (mad.fields.method.get(responseView, 0) !== MadMethod.GET_RESP) return undefined;
    if (!isDirected) return response;
    const status = mad.fields.status.get(responseView, 0);
    mad.fields.status.set(responseView, 0, status | MadStatus.DIRECTION);
    return returnDirected(responseView, portNumber) ? response : undefined;
  }

  /** The response of the device's agent; zeros if it gives none. */
  async #ask(cpu: Cpu, request: Uint8Array, sourceLid: number): Promise<Uint8Array> {
    const { commands, platform } = this.#device;
    const box = commands.mailboxes.take();
    try {
      platform.memory.bytes.set(request, box);
      const command = { input: box, inputModifier: madIfcModifier(portNumber, sourceLid) };
      return await commands.query(cpu, 'MAD_IFC', command, (bytes, at) => bytes.slice(at, at + madBytes));
    } catch (error) {
      // The device refuses what is no MAD.
      if (error instanceof KernelError) return new Uint8Array(madBytes);
      throw error;
    } finally {
      commands.mailboxes.give(box);
    }
  }
}
