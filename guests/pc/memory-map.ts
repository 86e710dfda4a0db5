/** Addresses of the PC: which part of its 4 GiB is what, and the lines of its interrupt controller. */

/** The firmware's tables, in the range where a kernel looks for them. */
export const tablesAddress = 0xe_0000;
/** The kernel's boot parameters, its command line. */
export const bootParametersAddress = 0x9_0000;
export const commandLineAddress = 0x9_2000;
/** First address of the extended BIOS data area, which ends usable low memory. */
export const lowMemoryEnd = 0x9_fc00;
export const highMemoryStart = 0x10_0000;

/** Configuration space by memory accesses (PCIe 7.2.2): 1 MiB for a bus, of which there is one. */
export const ecamAddress = 0xb000_0000;
export const ecamBytes = 2 ** 20;

/** Where functions of PCI devices are placed. */
export const windowAddress = 0xc000_0000;
export const windowBytes = 0x2000_0000;

export const localApicAddress = 0xfee0_0000;
export const ioApicAddress = 0xfec0_0000;

/** Lines of the I/O APIC: of the power management timer, the HCA's pin, the Ethernet card. */
export const controlLine = 9;
export const hcaLine = 10;
export const networkLine = 11;
/** Numbers of the devices on the bus: the HCA's, and of v86's Ethernet card. */
export const hcaDevice = 6;
export const networkDevice = 5;
/** Power management registers of v86's chipset (its src/acpi.js). */
export const powerEventPort = 0xb000;
export const powerControlPort = 0xb004;
export const powerTimerPort = 0xb008;
export const generalEventPort = 0xafe0;
/** Type of sleep for power-off, in the DSDT and as a kernel writes it. */
export const offSleepType = 5;
