/**
 * The simulated part of a fabric beside guests: its other hosts, whose kernels and drivers run and whose management agents answer, and its
 * switches. The hosts run no programs.
 */
import {
  type FabricSwitch,
  fabricSwitchOf,
  type HcaLedger,
  HcaNode,
  type HostLedger,
  HostNode,
  hcaLedgerOf,
  hostLedgerOf,
  type MachinePlan,
  type SwitchLedger,
  switchLedgerOf,
} from '../../machine/index.ts';
import { fabricRoutesOf, hostsOf, switchesOf } from '../../machine/topology/index.ts';
import type { LogicalProcess } from '../../sim/index.ts';

export interface FabricLedgers {
  readonly hosts: readonly HostLedger[];
  readonly hcas: readonly HcaLedger[];
  readonly switches: readonly SwitchLedger[];
}

export class FabricPart {
  readonly hosts: readonly HostNode[];
  readonly hcas: readonly HcaNode[];
  readonly switches: readonly FabricSwitch[];

  /**
   * Powers hosts and switches on.
   * @param peer a host that runs a program, which is not of this part; undefined: none
   */
  constructor(plan: MachinePlan, peer: number | undefined) {
    const { topology, config, guestHosts = 0 } = plan;
    const nodes = hostsOf(topology).filter((node) => node >= guestHosts && node !== peer);
    const routes = fabricRoutesOf(topology, config.machine.routing);
    const shared = { earlyPlacement: plan.shortcuts, zeroCopy: false };
    this.hcas = nodes.map((node) => new HcaNode(plan, node, undefined, shared));
    this.hosts = nodes.map((node, index) => new HostNode(plan, node, this.hcas[index]!.hca.shared));
    this.switches = switchesOf(topology).map((node) => fabricSwitchOf(plan, node, routes));
  }

  get processes(): LogicalProcess[] {
    return [...this.hosts, ...this.hcas, ...this.switches].map(({ lp }) => lp);
  }

  ledgers(): FabricLedgers {
    return {
      hosts: this.hosts.map(hostLedgerOf),
      hcas: this.hcas.map(hcaLedgerOf),
      switches: this.switches.map(switchLedgerOf),
    };
  }
}
