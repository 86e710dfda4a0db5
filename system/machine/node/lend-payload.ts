/**
 * Has HCAs lend the payload they have received to the root complexes of hosts in the same thread, straight from the ring of
 * the cable's channel: one copy less of each byte, and no difference to anything simulated.
 */
import type { Hca } from '../../../hw/hca/index.ts';
import { PayloadLoans, type RootComplex } from '../../../hw/pcie/index.ts';

/** Joins each HCA with the host of its node, where both are there. */
export function lendPayload(
  hosts: readonly { readonly node: number; readonly rootComplex: RootComplex }[],
  hcas: readonly { readonly node: number; readonly hca: Hca }[],
): void {
  for (const { node, hca } of hcas) {
    const host = hosts.find((found) => found.node === node);
    if (host === undefined) continue;
    const loans = new PayloadLoans(hca.wirePort.rxBytes);
    hca.linkPort.loans = loans;
    hca.wirePort.lend(loans);
    host.rootComplex.writes.loans = loans;
  }
}
