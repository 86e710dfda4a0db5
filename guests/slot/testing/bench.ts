/** A server with a test device on its own socket, for specs. */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VfioUserClient } from '../client/client.ts';
import { Reactor } from '../reactor.ts';
import type { VfioUserConfig } from '../vfio-user/parameters.ts';
import { VfioUserServer } from '../vfio-user/vfio-user-server.ts';
import { TestDevice } from './device.ts';

export class ServerBench {
  readonly device = new TestDevice();
  readonly folder = mkdtempSync(join(tmpdir(), 'hca-guest-'));
  readonly path = join(this.folder, 'slot.sock');
  readonly ends: string[] = [];
  readonly server: VfioUserServer;
  readonly reactor: Reactor;
  readonly #clients: VfioUserClient[] = [];

  constructor(config: Partial<VfioUserConfig> = {}) {
    this.server = new VfioUserServer({
      path: this.path,
      device: this.device,
      config,
      onClientEnd: (reason) => this.ends.push(reason),
      onRefuse: () => this.ends.push('refused'),
    });
    this.reactor = new Reactor([this.server]);
  }

  readonly pump = (): void => {
    this.reactor.poll(0);
  };

  /** Lets the server do all available work. */
  settle(): void {
    while (this.reactor.poll(0));
  }

  connect(): VfioUserClient {
    const client = new VfioUserClient(this.path, this.pump);
    this.#clients.push(client);
    return client;
  }

  /** A client after its handshake. */
  connectAgreed(): VfioUserClient {
    const client = this.connect();
    client.handshake();
    return client;
  }

  close(): void {
    for (const client of this.#clients) client.close();
    this.reactor.close();
    rmSync(this.folder, { recursive: true });
  }
}

/** Descriptors that this process has open. */
export const openDescriptorCount = (): number => readdirSync('/proc/self/fd').length;
