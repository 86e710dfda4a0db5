export { type Chart, type ChartLine, shortText } from './chart.ts';
export { type ChartPage, chartPage, type PageTable } from './page.ts';
export { terminalChart } from './terminal.ts';
