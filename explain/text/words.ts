/** Names of the model in words: blocks, causes, stages and TLP classes. `dmaReadReturn` becomes "DMA read return". */

/** Words written in capitals; each also in the plural. */
const capitals: Readonly<Record<string, string>> = {
  ...{
    ack: 'ACK',
    cpu: 'CPU',
    cq: 'CQ',
    cqc: 'CQC',
    cqe: 'CQE',
    dma: 'DMA',
    eq: 'EQ',
    eqc: 'EQC',
    eqe: 'EQE',
  },
  ...{
    hca: 'HCA',
    icm: 'ICM',
    io: 'I/O',
    iommu: 'IOMMU',
    mad: 'MAD',
    mpt: 'MPT',
    mtt: 'MTT',
    mtu: 'MTU',
    nak: 'NAK',
  },
  ...{
    nic: 'NIC',
    pcie: 'PCIe',
    psn: 'PSN',
    qp: 'QP',
    qpc: 'QPC',
    rdma: 'RDMA',
    rnr: 'RNR',
    roce: 'RoCE',
    rx: 'RX',
  },
  ...{ srq: 'SRQ', srqc: 'SRQC', tlp: 'TLP', tx: 'TX', wqe: 'WQE', msix: 'MSI-X', blueflame: 'BlueFlame' },
};

/** Compounds that are not split. */
const wholes: Readonly<Record<string, string>> = { blueFlame: 'BlueFlame', msix: 'MSI-X', rxCq: 'RX CQ' };

/** Converts a name in lower case or camel case to words; capitals of the standards stay. */
export function wordsOf(name: string): string {
  if (wholes[name] !== undefined) return wholes[name];
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(' ')
    .map(wordOf)
    .join(' ');
}

function wordOf(word: string): string {
  const lower = word.toLowerCase();
  const singular = lower.replace(/s$/, '');
  if (capitals[lower] !== undefined) return capitals[lower];
  if (lower !== singular && capitals[singular] !== undefined) return `${capitals[singular]}s`;
  return /^[A-Z][a-z]/.test(word) ? lower : word;
}

/** Capitalises a phrase for the beginning of a title. */
export const titled = (words: string): string => {
  const [first = ''] = words.split(' ');
  return /[A-Z]/.test(first) ? words : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
};
