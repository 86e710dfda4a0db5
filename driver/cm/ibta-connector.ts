/** The IBTA's CM of a device: the agent on QP1, the CM above it, and queries for paths. */
import { MadClass } from '../../abi/index.ts';
import type { Device } from '../device.ts';
import { ethernetPortOf } from '../ethernet-port.ts';
import type { Cpu } from '../platform.ts';
import type { Port } from '../port.ts';
import type { ProtocolTimers } from '../protocol-timers.ts';
import { privateDataMax } from '../rdma-cm.ts';
import { TransportVerb } from '../uapi.ts';
import type { CommunicationIds } from './communication-ids.ts';
import { ConnectionManager } from './connection-manager.ts';
import type { CmListener, Connector, ConnectorCounts, IdConnection } from './connector.ts';
import { initAttributes } from './ibta-qp-attributes.ts';
import { MadAgent, type MadConsumers } from './mad-agent.ts';
import type { Path } from './path.ts';
import { PathQueries } from './path-queries.ts';

export interface IbtaConnectorSetup {
  readonly device: Device;
  readonly port: Port;
  /** Both belong to the host, and outlive this device. */
  readonly ids: CommunicationIds;
  readonly listeners: ReadonlyMap<bigint, CmListener>;
}

export class IbtaConnector implements Connector {
  readonly transport = TransportVerb.IBV_TRANSPORT_IB;
  /** A REQ has 8 bits for each number of READs. The transitions of the QP check them against the card. */
  readonly limits = {
    privateDataBytes: privateDataMax[TransportVerb.IBV_TRANSPORT_IB],
    responderResources: 0xff,
    initiatorDepth: 0xff,
  };
  readonly initAttributes = initAttributes(undefined);
  readonly paths: PathQueries;
  readonly #manager: ConnectionManager;
  #agent!: MadAgent;

  private constructor(manager: ConnectionManager, paths: PathQueries) {
    this.#manager = manager;
    this.paths = paths;
  }

  /** Brings QP1 up. @throws KernelError ENOMEM */
  static async open(cpu: Cpu, { device, port, ids, listeners }: IbtaConnectorSetup): Promise<IbtaConnector> {
    const ethernet = ethernetPortOf(port);
    const manager: ConnectionManager = new ConnectionManager({
      platform: device.platform,
      caGuid: device.nodeGuid,
      ids,
      listeners,
      gidIndexTo: ethernet && ((gid, isRoutable) => ethernet.gidIndexTo(gid, isRoutable)),
      send: (thread, bytes, to) => connector.#agent.send(thread, bytes, to),
    });
    const { smLid: lid, smSl } = await port.query(cpu);
    const paths: PathQueries = new PathQueries({
      timers: manager.timers,
      manager: { lid, serviceLevel: smSl },
      send: (thread, bytes, to) => connector.#agent.send(thread, bytes, to),
    });
    const connector: IbtaConnector = new IbtaConnector(manager, paths);
    const consumers: MadConsumers = new Map([
      [MadClass.COMMUNICATION, (thread, received) => manager.receive(thread, received)],
      [MadClass.SUBN_ADM, (thread, received) => paths.receive(thread, received)],
    ]);
    connector.#agent = await MadAgent.open(cpu, device, consumers);
    return connector;
  }

  get timers(): ProtocolTimers {
    return this.#manager.timers;
  }

  get counts(): ConnectorCounts {
    const { connectionCount, dropped } = this.#manager;
    return { ...this.#agent.counts, connections: connectionCount, dropped: { ...dropped } };
  }

  newConnection(path: Path): IdConnection {
    return this.#manager.newConnection(path);
  }

  /** The CM looks for a listener when a request arrives. */
  async listen(): Promise<void> {}

  stopListening(): void {}

  async close(cpu: Cpu, notify: () => void): Promise<void> {
    this.#manager.close();
    this.paths.close();
    notify();
    await this.#agent.close(cpu);
  }
}
