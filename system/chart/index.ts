export { type Chart, type ChartLine, type ChartMark, sizeText } from './chart.ts';
export { type HtmlPage, type HtmlTable, htmlPage } from './html-chart.ts';
export { type TerminalChartOptions, terminalChart } from './terminal-chart.ts';
