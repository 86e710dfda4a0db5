/**
 * The network part of one host's kernel: driver, stack and sockets together. The machine builds and wires it.
 *
 *     const network = new Network(platform, config, { address, neighbours });
 * await network.probe(cpu);                       // a kernel thread, after enumeration
 *     const calls = network.open(process.memory);     // once a process; process.onExit((cpu) => calls.exit(cpu))
 *     const fd = await calls.socket(cpu);
 */
import { defaultsOf } from '../base/index.ts';
import { NicDriver } from './driver/index.ts';
import { NetStatistics } from './net-statistics.ts';
import { type NetConfig, netParameters } from './parameters.ts';
import type { Cpu, NetPlatform, UserMemory } from './platform.ts';
import { SocketCalls } from './socket/index.ts';
import { type NetAddresses, NetworkStack } from './stack/index.ts';

/** The default parameters, with whole parts replaced. */
export function netConfigOf(parts: Partial<NetConfig> = {}): NetConfig {
  return {
    driver: defaultsOf(netParameters.driver),
    stack: defaultsOf(netParameters.stack),
    cost: defaultsOf(netParameters.cost),
    ...parts,
  };
}

export class Network {
  /** Counters of the path; for reports. */
  readonly counts = new NetStatistics();
  readonly driver: NicDriver;
  readonly stack: NetworkStack;

  constructor(platform: NetPlatform, config: NetConfig, addresses: NetAddresses) {
    this.driver = new NicDriver(platform, config.driver, config.cost, this.counts);
    this.stack = new NetworkStack(platform, config.stack, config.cost, this.counts, this.driver, addresses);
    this.driver.connect(this.stack);
  }

  /** Brings the NIC up. @throws NetError ENODEV, ENOMEM, EIO */
  async probe(cpu: Cpu): Promise<void> {
    await this.driver.probe(cpu);
  }

  /** The socket calls of a process. */
  open(memory: UserMemory): SocketCalls {
    return new SocketCalls(this.stack, memory);
  }

  /** Ends every connection and releases everything, after all processes have closed their sockets. */
  async remove(cpu: Cpu): Promise<void> {
    this.stack.shutDown(cpu);
    await this.driver.remove(cpu);
  }
}
